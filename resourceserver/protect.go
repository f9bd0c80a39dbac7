package resourceserver

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Protect returns a handler that serves the metadata document at its
// well-known paths, answers CORS preflights, and passes a request on to next
// only with a valid token (and, with Options.Operations, with the scopes that
// the operation needs). next finds the token by TokenFromContext; the
// Authorization header is gone, so that no proxy forwards it by accident.
func (s *Server) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.paths[r.URL.Path] {
			s.serveMetadata(w, r)
			return
		}
		allowBrowsers(w.Header())
		if isPreflight(r) {
			writePreflight(w)
			return
		}
		r, err := s.admit(w, r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit checks token and scopes and returns the request that the handler gets,
// or r itself beside an error.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	raw, err := bearerToken(r.Header)
	if err != nil {
		return r, err
	}
	token, err := s.verifier.verify(r.Context(), raw)
	if err != nil {
		return r, err
	}
	if s.opts.Operations != nil && r.Method == http.MethodPost {
		if err := s.checkOperations(w, r, token); err != nil {
			return r, err
		}
	}
	out := r.WithContext(context.WithValue(r.Context(), tokenKey{}, token))
	if !s.opts.AllowTokenPassthrough {
		out.Header = maps.Clone(r.Header)
		out.Header.Del("Authorization")
	}
	return out, nil
}

// RequireScopes returns middleware for a handler behind Protect that admits
// only tokens with all of scopes. Others get 403 with one challenge that names
// them all; a request that did not pass Protect gets 401.
func (s *Server) RequireScopes(scopes ...string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token, ok := TokenFromContext(r.Context())
			if !ok {
				s.refuse(w, r, errNoToken)
				return
			}
			if !token.HasScopes(scopes...) {
				s.refuse(w, r, insufficientScope(token, scopes))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// refuse answers with err, which is one of the errors made in this package; an
// unknown one is 500, so that a mistake of ours never opens the door (JW-31).
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var e *refusal
	if !errors.As(err, &e) {
		e = &refusal{status: http.StatusInternalServerError, code: "server_error",
			description: "the request could not be checked", err: err}
	}
	level := slog.LevelDebug
	if e.status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	s.log.Log(r.Context(), level, "request refused", slog.Int("status", e.status), slog.String("error", e.code),
		slog.String("error_description", e.description), slog.Any("cause", e.err))
	if c, ok := s.challenge(e); ok {
		w.Header().Set("WWW-Authenticate", c)
	}
	writeRefusal(w, e)
}

// challenge returns the WWW-Authenticate value for e (M1, M6). resource_metadata
// comes first and every value is quoted, as the strictest parsers among clients
// need it.
func (s *Server) challenge(e *refusal) (string, bool) {
	c := oauth.Challenge{Scheme: "Bearer", Params: [][2]string{{"resource_metadata", s.metadataURL}}}
	switch {
	case e.status == http.StatusUnauthorized:
		c.Params = append(c.Params, [2]string{"scope", joinScopes(s.opts.Scopes)})
	case e.status == http.StatusForbidden && e.code == "insufficient_scope":
		c.Params = append(c.Params, [2]string{"scope", joinScopes(e.scopes)})
	default:
		return "", false
	}
	// RFC 6750 §3.1: a request without a token gets no error code.
	if e.code != "" {
		c.Params = append(c.Params, [2]string{"error", e.code}, [2]string{"error_description", e.description})
	}
	return c.String(), true
}
