package resourceserver

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// refusal is why a request is not served. err is logged, never sent.
type refusal struct {
	status      int
	code        string // error attribute; "" for a request without a token
	description string
	scopes      []string      // scope attribute of insufficient_scope
	retryAfter  time.Duration // for 503
	rpcCode     int           // the JSON-RPC error code of a body that is refused
	rpcID       []byte        // the id of its message, as written; nil is null
	err         error
}

func (e *refusal) Error() string {
	return fmt.Sprintf("%d %s: %s (%v)", e.status, e.code, e.description, e.err)
}

func (e *refusal) Unwrap() error { return e.err }

// errNoToken answers a request without a token: 401 without an error attribute
// (RFC 6750 §3.1, JW-01).
var errNoToken = &refusal{status: http.StatusUnauthorized, description: "a bearer token is required"}

// invalidToken refuses a token that was sent: 401 invalid_token, also for an
// expired one or one for another audience (M6).
func invalidToken(format string, args ...any) *refusal {
	return &refusal{status: http.StatusUnauthorized, code: "invalid_token", description: fmt.Sprintf(format, args...)}
}

// insufficientScope asks for everything at once: what is missing and what the
// token has already, so that a client which requests exactly the challenge's
// scopes loses none (MCP authorization, scope challenge handling; M6).
func insufficientScope(t *Token, missing []string) *refusal {
	all := slices.Clone(t.Scopes)
	for _, s := range missing {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return &refusal{status: http.StatusForbidden, code: "insufficient_scope", scopes: all,
		description: "the token lacks a scope that this operation needs"}
}

// forbidden refuses what no token could open: 403 without a challenge, or the
// client would ask for a better token again and again.
func forbidden(description string) *refusal {
	return &refusal{status: http.StatusForbidden, code: "access_denied", description: description}
}

// unavailable is 503: a 401 would send every client to sign in again (M8).
func unavailable(err error) *refusal {
	return &refusal{status: http.StatusServiceUnavailable, code: "temporarily_unavailable", retryAfter: 5 * time.Second,
		description: "tokens cannot be checked at the moment; try again shortly", err: err}
}

func writeRefusal(w http.ResponseWriter, e *refusal) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if e.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.retryAfter.Seconds()))))
	}
	w.WriteHeader(e.status)
	_ = json.NewEncoder(w).Encode(refusalBody(e))
}

func refusalBody(e *refusal) any {
	if e.rpcCode != 0 {
		return map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(e.rpcID),
			"error": map[string]any{"code": e.rpcCode, "message": e.description}}
	}
	body := map[string]string{"error": e.code, "error_description": e.description}
	if e.code == "" {
		body["error"] = "unauthorized"
	}
	return body
}

func joinScopes(scopes []string) string { return strings.Join(scopes, " ") }
