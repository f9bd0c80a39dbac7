package authserver

import (
	"context"
	"errors"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
)

// alarmTimeout bounds the transaction that ends a reused grant.
const alarmTimeout = 5 * time.Second

// Redemption is everything that decides about a code or refresh token, read in
// one statement.
type Redemption struct {
	Grant grant.Grant
	// Client is the grant's client; nil when it was removed.
	Client *registration.Client
	// SubjectEnabled reports that the account exists and is not switched off.
	SubjectEnabled bool
	// ResourceRegistered reports that the resource has a row; Scopes are those it
	// declares.
	ResourceRegistered bool
	Scopes             []resource.Scope
}

// Redemptions loads redemptions. internal/sqlstore implements it.
type Redemptions interface {
	// LoadRedemption reads the grant with its client, account and resource in one
	// SELECT, or returns store.ErrNotFound.
	LoadRedemption(ctx context.Context, grantID string) (Redemption, error)
}

// unit is the state of one token request: what it presented and what was read
// for it, so that client authentication and the grant share one SELECT.
type unit struct {
	params oauth.Params
	header string // Authorization
	now    time.Time
	// ref is the token presented, valid when hasRef; genuine says its tag is right.
	ref     tokenRef
	hasRef  bool
	genuine bool
	// loaded is the grant presented, nil when there is none.
	loaded *Redemption
	// rowless is what client_credentials issues for: a grant that has no row.
	rowless *grant.Grant
	// client is who authenticated, by method.
	client *registration.Client
	method string
	// result is what the grant's handler issued.
	result *tokenResult
}

type unitKey struct{}

func withUnit(ctx context.Context, u *unit) context.Context {
	return context.WithValue(ctx, unitKey{}, u)
}

func unitFrom(ctx context.Context) *unit {
	u, _ := ctx.Value(unitKey{}).(*unit)
	return u
}

// present parses the token string and reads its grant: the first two checks of
// D30. A string that is not ours or names no grant is no error here: who asks is
// established first, so that an unknown client learns that it is unknown (A19).
func (s *Server) present(ctx context.Context, u *unit, kind string, token oauth.Secret) error {
	ref, err := s.tokens.parse(kind, token)
	if err != nil {
		return nil
	}
	u.ref, u.hasRef = ref, true
	return s.load(ctx, u)
}

// load reads the grant of u.ref, again after a lost race.
func (s *Server) load(ctx context.Context, u *unit) error {
	loaded, err := s.o.Redemptions.LoadRedemption(ctx, u.ref.grantID)
	if errors.Is(err, store.ErrNotFound) {
		u.loaded, u.genuine = nil, false
		return nil
	}
	if err != nil {
		return err
	}
	u.loaded = &loaded
	u.genuine = s.tokens.verify(u.ref, loaded.Grant.Salt)
	return nil
}

// usable applies the checks of D30 between client authentication and the
// generation, in that order. None of them ends a grant.
func (s *Server) usable(u *unit) error {
	switch g := u.loaded; {
	case g == nil, !u.genuine:
		return oauth.InvalidGrant("the token is unknown, used up or not from this server")
	case g.Client == nil || g.Grant.ClientID != u.client.ID:
		return oauth.InvalidGrant("the token was issued to another client")
	case !g.SubjectEnabled:
		return oauth.InvalidGrant("the account is not available")
	case !g.ResourceRegistered && !s.o.Resources.AllowsUnregistered(g.Grant.Resource):
		return oauth.InvalidGrant("the resource is no longer registered")
	case !g.Grant.EndedAt.IsZero():
		return oauth.InvalidGrant("the grant has ended")
	case !u.now.Before(g.Grant.ExpiresAt):
		return oauth.InvalidGrant("the grant has expired")
	}
	return nil
}

// requestedResource applies A25 and A26: resource may be left out, may repeat
// when all values mean the grant's resource, and may name nothing else.
func (s *Server) requestedResource(ctx context.Context, u *unit) error {
	values := u.params.All("resource")
	if len(values) == 0 {
		return nil
	}
	found, err := s.o.Resources.Find(ctx, values)
	if err != nil {
		return err
	}
	if found.Identifier != u.loaded.Grant.Resource {
		return oauth.InvalidTarget("the grant does not cover this resource")
	}
	return nil
}

// endReused ends a grant whose used token came back, with the remembered
// consent and an audit event, in one transaction (D10, RFC 9700 §4.14.2).
func (s *Server) endReused(ctx context.Context, g *grant.Grant, reason string, now time.Time) error {
	// an alarm is not called off by hanging up
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), alarmTimeout)
	defer cancel()
	ender := grant.Ender{Tx: s.o.Tx, Grants: s.o.Grants, Consents: s.o.Consents, Audit: s.o.Audit}
	_, err := ender.End(ctx, *g, reason, now, audit.Event{Name: "grant.reuse_detected", Actor: g.ClientID, Outcome: "failure"})
	return err
}
