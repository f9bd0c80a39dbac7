// Package mcpsdk joins resourceserver with the official Go SDK of the Model
// Context Protocol, so that a tool finds the token of its request and a session
// stays with the person who began it. It is a package of its own: programs on
// another SDK do not compile this one's.
//
// Handler is for servers behind Protect, which is what a server should use.
// Verifier is for those that stay with the SDK's auth.RequireBearerToken for now:
// it makes their tokens as well checked, but the rest of Protect is missing (the
// metadata document, scopes per tool and the step-up, 503 while the issuer is
// away, Origin and Host, streams that end with the token).
package mcpsdk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// extraToken is the member of TokenInfo.Extra that holds the token.
const extraToken = "token"

// standIn is what the SDK finds in place of the token that Protect removed.
const standIn = "Bearer checked"

// protectDecides keeps the SDK from judging by its own clock, and without a
// challenge, a token that Protect has let in.
const protectDecides = 100 * 365 * 24 * time.Hour

// Handler wraps an SDK handler that stands behind resourceserver's Protect:
//
//	rs.Protect(mcpsdk.Handler(mcp.NewStreamableHTTPHandler(getServer, nil)))
//
// TokenInfo.UserID is issuer and subject, so that the SDK refuses a session id
// of somebody else (JW-25); the token itself is found by Token. A request that
// did not pass Protect gets 401.
func Handler(next http.Handler) http.Handler {
	// The SDK's own middleware is the only way to its context key. It wants an
	// Authorization header; Protect has checked the real one, and removed it unless
	// Options.AllowTokenPassthrough says otherwise.
	inner := auth.RequireBearerToken(passed, &auth.RequireBearerTokenOptions{ClockSkew: protectDecides})(withoutStandIn(next))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without the local address the SDK does not look at Host: it knows loopback
		// names alone, and would refuse what a proxy on this machine passes on.
		// Protect has looked already, and knows the server's own name.
		r = r.Clone(context.WithValue(r.Context(), http.LocalAddrContextKey, nil))
		if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", standIn)
		}
		inner.ServeHTTP(w, r)
	})
}

// Verifier returns a TokenVerifier for the SDK's auth.RequireBearerToken that
// checks tokens as rs does, whose other duties it leaves undone: see the package
// comment.
func Verifier(rs *resourceserver.Server) auth.TokenVerifier {
	return func(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		t, err := rs.Verify(ctx, token)
		if errors.Is(err, resourceserver.ErrInvalidToken) {
			return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
		}
		if err != nil {
			return nil, err
		}
		return tokenInfo(t), nil
	}
}

// Token returns the token of a request that came by Handler or Verifier, and
// false for any other. Tools should ask it and not resourceserver's
// TokenFromContext: the SDK runs them in the context of the session's first
// request, and what a token may do can have changed since.
func Token(req mcp.Request) (*resourceserver.Token, bool) {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil, false
	}
	t, ok := extra.TokenInfo.Extra[extraToken].(*resourceserver.Token)
	return t, ok
}

func withoutStandIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == standIn {
			r.Header.Del("Authorization") // of the clone that Handler made
		}
		next.ServeHTTP(w, r)
	})
}

// passed is an auth.TokenVerifier that takes over what Protect verified.
func passed(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	t, ok := resourceserver.TokenFromContext(ctx)
	if !ok {
		return nil, fmt.Errorf("%w: the request did not pass Protect", auth.ErrInvalidToken)
	}
	return tokenInfo(t), nil
}

func tokenInfo(t *resourceserver.Token) *auth.TokenInfo {
	return &auth.TokenInfo{Scopes: t.Scopes, Expiration: t.ExpiresAt, UserID: t.Issuer + " " + t.Subject,
		Extra: map[string]any{extraToken: t}}
}
