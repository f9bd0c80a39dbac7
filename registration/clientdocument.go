package registration

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// ClientDocument is what is known of the document behind a client_id that is a
// URL: a row, so that restarts and other processes know the same.
type ClientDocument struct {
	// ClientID is the URL.
	ClientID string
	// Hash is the SHA-256 of the last good document, base64url; "" while none was read.
	Hash string
	// ETag and LastModified are its validators (RFC 9110 §8.8), "" for none.
	ETag         string
	LastModified string
	// FirstSeenAt is when the URL was first used as a client_id here.
	FirstSeenAt time.Time
	// FetchedAt is when the last good document was read or confirmed; zero: never.
	FetchedAt time.Time
	// FreshUntil is until when it is used without asking.
	FreshUntil time.Time
	// TriedAt is when it was last asked for.
	TriedAt time.Time
	// RetryAt is before when it is not asked for again after a failure; zero after
	// a success.
	RetryAt time.Time
	// Failures counts the failures since the last success.
	Failures int
	// Problem and Failure say what the last failure was, "" after a success.
	Problem Problem
	Failure string
}

// DocumentStore keeps client documents. Every method is one statement.
type DocumentStore interface {
	// GetClientDocument returns the row, or store.ErrNotFound.
	GetClientDocument(ctx context.Context, clientID string) (ClientDocument, error)
	// ListClientDocuments returns every row.
	ListClientDocuments(ctx context.Context) ([]ClientDocument, error)
	// PutClientDocument inserts or replaces the row after a success; FirstSeenAt
	// of a row that is there stays.
	PutClientDocument(ctx context.Context, d ClientDocument) error
	// FailClientDocument records a failure: Problem, Failure, TriedAt and RetryAt
	// of d, and one more of Failures. What is known of the last success stays.
	FailClientDocument(ctx context.Context, d ClientDocument) error
	// SpendFetch counts one fetch against the budget of a name: at most limit
	// since windowStart. It reports false, and counts nothing, when all are spent.
	SpendFetch(ctx context.Context, name string, limit int, now, windowStart time.Time) (bool, error)
}

// Bounds of a document's life (A33, CI-16).
const (
	minFresh     = 5 * time.Minute
	defaultFresh = time.Hour
	maxFresh     = 24 * time.Hour
	// maxStale is how long the last good document of a known client serves while
	// its host does not answer.
	maxStale = 7 * 24 * time.Hour
	// minRetry and maxRetry bound the pause after a failure, which doubles.
	minRetry = time.Minute
	maxRetry = time.Hour
)

// fresh reports whether the document needs no fetch.
func (d ClientDocument) fresh(now time.Time) bool { return d.Hash != "" && now.Before(d.FreshUntil) }

// servable reports whether the last good document may serve in spite of a
// problem. A host that does not answer may have its reasons; one that answers with
// a document which breaks a rule has taken the good one back, and it is gone after
// a day, as a cached one would be (CI-16).
func (d ClientDocument) servable(now time.Time, p Problem) bool {
	limit := maxStale
	if p == ProblemInvalid {
		limit = maxFresh
	}
	return d.Hash != "" && now.Before(d.FetchedAt.Add(limit))
}

// retryPause is how long to wait after one more failure.
func (d ClientDocument) retryPause() time.Duration {
	return min(minRetry<<min(d.Failures, 10), maxRetry)
}

// freshFor returns how long a document serves: what Cache-Control says (RFC 9111
// §5.2.2), between 5 minutes and 24 hours. A host that says no-store is asked
// again each 5 minutes.
func freshFor(h http.Header) time.Duration {
	fresh, shared := defaultFresh, false
	for _, directive := range strings.Split(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		switch name {
		case "no-store", "no-cache", "private":
			return minFresh
		case "s-maxage", "max-age":
			if name == "max-age" && shared {
				continue // RFC 9111 §5.2.2.10: s-maxage is for caches like ours
			}
			fresh, shared = maxAge(strings.Trim(value, `"`)), name == "s-maxage"
		}
	}
	return fresh
}

func maxAge(value string) time.Duration {
	seconds, err := strconv.ParseUint(value, 10, 63)
	switch {
	case err != nil && !isDigits(value):
		return minFresh // RFC 9111 §4.2.1: invalid freshness is stale
	case err != nil || seconds > uint64(maxFresh/time.Second):
		return maxFresh
	}
	return max(time.Duration(seconds)*time.Second, minFresh)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// maxValidator bounds what is kept of a validator; a longer one is not kept.
const maxValidator = 256

func validator(value string) string {
	if len(value) > maxValidator || strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
		return ""
	}
	return value
}

// Problem says why a client_id that is a URL names no client that may be used.
type Problem string

// Problems of a client_id that is a URL.
const (
	ProblemURL     Problem = "url"     // it is no Client Identifier URL
	ProblemDenied  Problem = "denied"  // the operator accepts no apps from its host
	ProblemWaiting Problem = "waiting" // the operator must verify it first
	ProblemUnread  Problem = "unread"  // the document could not be read
	ProblemInvalid Problem = "invalid" // the document breaks a rule
)

// ClientURLError reports that a client_id that is a URL names no client that may
// be used.
type ClientURLError struct {
	// Problem is why.
	Problem Problem
	// Host is the host of the URL, "" for a malformed one.
	Host string
	// Detail tells the app's developer which rule is broken; "" for ProblemUnread,
	// where it would tell what stands behind an address (CI-15).
	Detail string
	// Wait is how long to wait before trying again, 0 where that is of no use.
	Wait time.Duration
	// Err is the cause, for the log only.
	Err error
}

// Error returns the host, the problem and its cause, for logs.
func (e *ClientURLError) Error() string {
	s := "client_id is a URL: " + string(e.Problem)
	if e.Host != "" {
		s += " at " + e.Host
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *ClientURLError) Unwrap() error { return e.Err }

// describeInvalid returns the rule that a document breaks, as one sentence.
func describeInvalid(err *oauth.Error) string { return cleanText(err.Description, maxWord) }
