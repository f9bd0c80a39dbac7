package authserver

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
)

// windowZeroGrace is how long a rotated token is refused without harm when the
// retry window is 0 (D8).
const windowZeroGrace = 2 * time.Second

// maxRefreshTries bounds how often a refresh reads its grant again after another
// request advanced it in between.
const maxRefreshTries = 4

// checkRefresh applies every rule of a refresh request (OAuth 2.1 §4.3) but the
// generation, in the order of D30. None of them ends the grant.
func (s *Server) checkRefresh(ctx context.Context, u *unit) error {
	if u.params.Get("refresh_token") == "" {
		return oauth.InvalidRequest("refresh_token is missing")
	}
	if err := s.usable(u); err != nil {
		return err
	}
	g := &u.loaded.Grant
	if strength(u.method) < strength(g.AuthMethod) {
		return oauth.InvalidGrant("the client authenticated more strongly when the code was redeemed")
	}
	if err := s.requestedResource(ctx, u); err != nil {
		return err
	}
	if _, err := narrowed(u); err != nil {
		return err
	}
	// at generation 0 the commit that set the limit was lost (D30)
	if !g.OfflineAccess || g.Generation > 0 && !u.now.Before(g.RefreshExpiresAt) {
		return oauth.InvalidGrant("the refresh token has expired")
	}
	return nil
}

// narrowed returns the scopes of this access token: all that were granted, or
// the part asked for. Order and offline_access do not matter (A28); a broad
// scope covers the narrow ones it implies (D13).
func narrowed(u *unit) ([]string, error) {
	g := &u.loaded.Grant
	asked, err := oauth.ParseScope(u.params.Get("scope"))
	if err != nil {
		return nil, err
	}
	asked = slices.DeleteFunc(asked, oauth.IsProtocolScope)
	if len(asked) == 0 {
		return g.Scopes, nil
	}
	res := resource.Resource{Scopes: u.loaded.Scopes}
	for _, scope := range asked {
		if !res.Covers(g.Scopes, scope) {
			return nil, oauth.InvalidScope("scope asks for more than was granted")
		}
	}
	return asked, nil
}

// step is what a refresh token's generation means against the row's (D8, D30).
type step int

const (
	stepRotate step = iota // the newest token: rotate
	stepRepeat             // the one before, inside the window: the same successor again
	stepHeal               // one ahead: the commit that made it was lost
	stepRefuse             // refused without harm
	stepReuse              // a token that was rotated away: end the grant
	stepForged             // further ahead than can be: refused, critical
)

// stepOf decides what a genuine refresh token of generation presented means.
func stepOf(g *grant.Grant, presented int, window time.Duration, now time.Time) step {
	switch age := now.Sub(g.AdvancedAt); {
	case presented == g.Generation:
		return stepRotate
	case presented == g.Generation+1:
		return stepHeal
	case presented > g.Generation+1:
		return stepForged
	case presented == g.Generation-1 && window > 0 && age <= window:
		return stepRepeat
	case presented == g.Generation-1 && window == 0 && age <= windowZeroGrace:
		return stepRefuse
	}
	return stepReuse
}

// refresh rotates the grant and issues the successor, or repeats it inside the
// retry window, or ends the grant when a rotated token comes back (RFC 9700
// §4.14.2). Successors are derived, so any number of parallel requests get the
// same one.
func (s *Server) refresh(ctx context.Context, u *unit) error {
	for range maxRefreshTries {
		done, err := s.tryRefresh(ctx, u)
		if done || err != nil {
			return err
		}
		// another request advanced the grant between our read and our write
		if err := s.load(ctx, u); err != nil {
			return err
		}
		if err := s.usable(u); err != nil {
			return err
		}
	}
	return oauth.Unavailable(time.Second, nil)
}

func (s *Server) tryRefresh(ctx context.Context, u *unit) (done bool, err error) {
	g := &u.loaded.Grant
	switch stepOf(g, u.ref.generation, s.o.RefreshRetryWindow, u.now) {
	case stepRepeat:
		return true, s.issueRefresh(u, g, g.Generation)
	case stepRefuse:
		return true, oauth.InvalidGrant("the refresh token was just used by another request")
	case stepReuse:
		if err := s.endReused(ctx, g, grant.ReasonRefreshReuse, u.now); err != nil {
			return true, err
		}
		return true, oauth.InvalidGrant("the refresh token was used before; the grant has ended")
	case stepForged:
		if err := s.recordForged(ctx, u); err != nil {
			return true, err
		}
		return true, oauth.InvalidGrant("the refresh token is not valid")
	case stepHeal:
		s.o.Log.WarnContext(ctx, "a lost commit was healed", slog.String("event", "grant.healed"),
			slog.String("grant_id", g.ID), slog.Int("generation", g.Generation))
	}
	next := u.ref.generation + 1
	if err := s.issueRefresh(u, g, next); err != nil {
		return true, err
	}
	ok, err := s.o.Grants.AdvanceGrant(ctx, grant.Advance{ID: g.ID, From: g.Generation, To: next, Now: u.now,
		AuthMethod: u.method, RefreshExpiresAt: earlier(u.now.Add(s.o.RefreshIdle), g.ExpiresAt), Unregistered: !u.loaded.ResourceRegistered})
	if err != nil || !ok {
		u.result = nil
	}
	return ok, err
}

// recordForged tells the operator of a genuine token that this database cannot
// have led to: it was restored from a backup, or the secret is in other hands
// (D30). The grant stays.
func (s *Server) recordForged(ctx context.Context, u *unit) error {
	g := &u.loaded.Grant
	s.o.Log.ErrorContext(ctx, "refresh token from the future", slog.String("event", "grant.generation_ahead"),
		slog.String("grant_id", g.ID), slog.Int("generation", g.Generation), slog.Int("presented", u.ref.generation))
	return s.o.Audit.Append(ctx, audit.New(ctx, u.now, audit.Event{Name: "grant.generation_ahead", Actor: g.ClientID,
		Subject: g.Subject, ClientID: g.ClientID, Resource: g.Resource, GrantID: g.ID, Outcome: "failure",
		Detail: map[string]string{"severity": "critical", "generation": strconv.Itoa(g.Generation),
			"presented": strconv.Itoa(u.ref.generation)}}))
}

func (s *Server) issueRefresh(u *unit, g *grant.Grant, generation int) error {
	scopes, err := narrowed(u)
	if err != nil {
		return err
	}
	return s.issueFor(u, g, scopes, generation)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
