package consent

import (
	"context"
	"time"
)

// A client whose step-up is refused may ask again at once, and some do, without
// end. What was refused three times within refusalWindow is therefore
// answered without a page, for QuietFor or until the person lets it ask.
const refusalWindow = time.Hour

// QuietFor is how long after its last refusal a set of permissions is not asked
// for: long enough to end a loop, and no verdict for ever.
const QuietFor = 24 * time.Hour

// Refusal is one set of permissions that a subject refused beyond what a
// remembered decision allows.
type Refusal struct {
	Subject     string
	ClientID    string
	RedirectURI string
	Resource    string
	// Scopes are the set, sorted; offline_access stands for staying connected.
	Scopes []string
	// RefusedAt is the last time.
	RefusedAt time.Time
}

// RefusalStore keeps refusals, each as long as the consent it is about. Every
// method is one statement.
type RefusalStore interface {
	// CountRefusal records that r.Scopes were refused at r.RefusedAt, and makes the
	// set quiet when that is the third time since windowStart. Of refusals at the
	// same moment each counts. The consent of r must be held.
	CountRefusal(ctx context.Context, r Refusal, windowStart time.Time) error
	// IsQuiet reports whether the set of r is quiet and was refused after since.
	IsQuiet(ctx context.Context, r Refusal, since time.Time) (bool, error)
	// ListQuiet returns the subject's quiet sets that were refused after since.
	ListQuiet(ctx context.Context, subject string, since time.Time) ([]Refusal, error)
	// DeleteRefusals forgets the refusals of that subject, client and resource, and
	// returns how many there were.
	DeleteRefusals(ctx context.Context, subject, clientID, resource string) (int, error)
}

// WasRefused reports whether m is answered without asking at now: the person
// refused the same set three times within an hour, less than QuietFor ago.
func WasRefused(ctx context.Context, refusals RefusalStore, m *More, now time.Time) (bool, error) {
	return refusals.IsQuiet(ctx, m.Refusal(), now.Add(-QuietFor))
}
