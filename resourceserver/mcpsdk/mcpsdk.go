// Package mcpsdk joins resourceserver with the official Go SDK of the Model
// Context Protocol, so that a tool finds the token in its request's TokenInfo
// and a session stays with the person who began it. It is a package of its own:
// programs on another SDK do not compile this one's.
package mcpsdk

import (
	"context"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// Handler wraps an SDK handler that stands behind resourceserver's Protect:
//
//	rs.Protect(mcpsdk.Handler(mcp.NewStreamableHTTPHandler(getServer, nil)))
//
// TokenInfo.UserID is issuer and subject, so that the SDK refuses a session id
// of somebody else (JW-25); TokenInfo.Extra["token"] is the
// *resourceserver.Token. A request that did not pass Protect gets 401.
func Handler(next http.Handler) http.Handler {
	// The SDK's own middleware is the only way to its context key. It wants an
	// Authorization header; Protect has checked and removed the real one.
	inner := auth.RequireBearerToken(tokenInfo, nil)(withoutAuthorization(next))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer checked")
		inner.ServeHTTP(w, r)
	})
}

func withoutAuthorization(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Authorization") // of the clone that Handler made
		next.ServeHTTP(w, r)
	})
}

// tokenInfo is an auth.TokenVerifier that takes over what Protect verified.
func tokenInfo(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	t, ok := resourceserver.TokenFromContext(ctx)
	if !ok {
		return nil, fmt.Errorf("%w: the request did not pass Protect", auth.ErrInvalidToken)
	}
	return &auth.TokenInfo{Scopes: t.Scopes, Expiration: t.ExpiresAt, UserID: t.Issuer + " " + t.Subject,
		Extra: map[string]any{"token": t}}, nil
}
