package resourceserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// prepare builds what Protect needs of the options.
func (s *Server) prepare() (err error) {
	if s.opts.Operations != nil {
		s.table = newTable(s.opts)
	}
	s.implied = closure(s.opts.Implies)
	var doorErr, sessionErr, legacyErr error
	s.door, doorErr = newDoor(s.opts)
	s.sessions, sessionErr = newSessions(s.opts.SessionKey)
	if !s.opts.NoLegacyMetadata && !sameOrigin(s.opts.Issuer, s.opts.Resource) {
		s.legacyPaths, legacyErr = legacyPaths(s.opts.Resource)
		s.legacy = &legacyDocument{issuer: s.opts.Issuer, client: s.opts.HTTPClient, refresh: s.opts.KeyRefresh,
			retry: s.opts.KeyRetry, limit: s.opts.KeyLimit, now: s.opts.Now, log: s.log}
	}
	return errors.Join(doorErr, sessionErr, legacyErr)
}

// Protect returns a handler that serves the metadata document at its
// well-known paths, answers CORS preflights, and passes a request on to next
// only with a valid token (and, with Options.Operations, with the scopes that
// the operation needs). next finds the token by TokenFromContext; the
// Authorization header is gone from the request, so that no proxy forwards it, and
// for what stands around Protect too, so that no log has it by accident. A request
// with a deadline, as under http.TimeoutHandler, keeps it outside of Protect: what
// gave up on the handler reads the header while it runs. Who passes requests to
// goroutines of its own without a deadline waits for them, or passes a clone. Event
// streams end when the token expires.
func (s *Server) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.answer(w, r) {
			return
		}
		x, out, err := s.admit(w, r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		completed := false
		defer func() {
			if !completed && x.expired() {
				// A reverse proxy aborts when its stream is cut. The client should
				// see the end of an answer, not of a connection.
				if p := recover(); p != http.ErrAbortHandler {
					panic(p)
				}
			}
			x.finish(completed)
		}()
		next.ServeHTTP(&x.out, out)
		completed = true
	})
}

// answer handles what needs no token, and reports whether it has.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) bool {
	if err := s.door.checkHost(r); err != nil {
		s.refuse(w, r, err)
		return true
	}
	if s.serveDocument(w, r) {
		return true
	}
	if err := s.door.checkOrigin(r); err != nil {
		s.refuse(w, r, err)
		return true
	}
	s.door.allowBrowsers(w.Header(), r)
	if isPreflight(r) {
		writePreflight(w, r)
		return true
	}
	return false
}

// serveDocument answers at the well-known paths, and reports whether it has. All
// of them begin alike (RFC 8615), so other requests are not looked up.
func (s *Server) serveDocument(w http.ResponseWriter, r *http.Request) bool {
	switch path := r.URL.Path; {
	case !strings.HasPrefix(path, "/.well-known/"):
		return false
	case s.paths[path]:
		s.serveMetadata(w, r)
		return true
	case s.legacyPaths[path]:
		s.legacy.serve(w, r)
		return true
	}
	return false
}

// admit checks token, scopes and session, and returns the request that the
// handler gets.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (*exchange, *http.Request, error) {
	raw, err := bearerToken(r.Header)
	if err != nil {
		return nil, nil, err
	}
	token, err := s.verify(r.Context(), raw)
	if err != nil {
		return nil, nil, err
	}
	var q *request
	if s.table != nil {
		if q, err = s.checkOperations(w, r, token); err != nil {
			return nil, nil, err
		}
	}
	// Who gave up on the request, as http.TimeoutHandler does, may read its header
	// from now on: it is not changed any more.
	if err := r.Context().Err(); err != nil {
		return nil, nil, unavailable(err)
	}
	x := s.newExchange(w, r, token)
	x.req = *r.WithContext(&x.ctx) // copied, so that it is no allocation of its own
	out := &x.req
	if q != nil {
		q.restore(out)
	}
	if err := s.prepareHeader(out, token); err != nil {
		return nil, nil, err
	}
	if s.opts.FilterLists && (q != nil || r.Method == http.MethodGet) {
		if x.out.filter = s.newListFilter(token, q); x.out.filter != nil {
			out.Header.Del("Accept-Encoding") // what is encoded could not be filtered
		}
	}
	return x, out, nil
}

// verify returns a token or an error, whatever becomes of the verifier (JW-31).
func (s *Server) verify(ctx context.Context, raw string) (token *Token, err error) {
	defer func() {
		if p := recover(); p != nil {
			token, err = nil, fmt.Errorf("the verification panicked: %v", p)
		}
	}()
	if token, err = s.verifier.verify(ctx, raw); err == nil && token == nil {
		err = errors.New("the verification returned no token")
	}
	return token, err
}

// checkOperations reads the messages of r and asks the table for all of them at
// once.
func (s *Server) checkOperations(w http.ResponseWriter, r *http.Request, t *Token) (*request, error) {
	q, err := s.readRequest(w, r)
	if err != nil || q == nil {
		return nil, err
	}
	needed, ok := s.table.needs(q.messages)
	if !ok {
		return nil, forbidden("no scope opens this operation")
	}
	if missing := s.missing(t, needed); len(missing) > 0 {
		return nil, insufficientScope(t, missing)
	}
	return q, nil
}

// prepareHeader takes the token off the request (JW-24), for who stands around
// Protect too: a copy of the header would cost as much as all the rest. Who set a
// deadline, as http.TimeoutHandler does, may read the header while we change it, so
// a request that has one gets a copy. Where more is to change, it is changed in a
// copy: nobody else may take the handler's session id for the client's.
func (s *Server) prepareHeader(out *http.Request, t *Token) error {
	if _, limited := out.Context().Deadline(); limited {
		out.Header = maps.Clone(out.Header)
	}
	if !s.opts.AllowTokenPassthrough {
		delete(out.Header, "Authorization")
	}
	if out.Header[headerSession] == nil && !s.opts.FilterLists {
		return nil
	}
	out.Header = maps.Clone(out.Header)
	return s.sessions.unseal(out.Header, t)
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
			if missing := s.missing(token, scopes); len(missing) > 0 {
				s.refuse(w, r, insufficientScope(token, missing))
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
	s.logRefusal(r.Context(), e)
	if c, ok := s.challenge(e); ok {
		w.Header().Set("WWW-Authenticate", c)
	}
	writeRefusal(w, e)
}

func (s *Server) logRefusal(ctx context.Context, e *refusal) {
	const message = "request refused"
	attrs := []slog.Attr{slog.Int("status", e.status), slog.String("error", e.code),
		slog.String("error_description", e.description), slog.Any("cause", e.err)}
	switch {
	case e.status == http.StatusServiceUnavailable:
		s.outage.warn(ctx, message, attrs...)
	case e.status >= http.StatusInternalServerError:
		s.log.LogAttrs(ctx, slog.LevelWarn, message, attrs...)
	default:
		s.log.LogAttrs(ctx, slog.LevelDebug, message, attrs...)
	}
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
