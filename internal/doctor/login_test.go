package doctor

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// MM-09, C3: a code is redeemed only where the response says, as promised, that the
// issuer of the token endpoint sent it.
func TestMM09_OnlyTheIssuersOwnCodeIsRedeemed(t *testing.T) {
	t.Parallel()
	const code, honest, promise = "code-of-the-honest-server", "https://honest.example", "authorization_response_iss_parameter_supported"
	from := func(iss ...string) func(own, state string) url.Values {
		return func(own, state string) url.Values {
			v := url.Values{"code": {code}, "state": {state}}
			for _, i := range iss {
				v.Add("iss", strings.ReplaceAll(i, "OWN", own))
			}
			return v
		}
	}
	for _, tt := range []struct {
		name     string
		metadata func(map[string]any)
		response func(own, state string) url.Values
		redeemed bool
		id       string // of the finding
		state    State
		why      string
	}{
		{name: "its own", response: from("OWN"), redeemed: true, id: "login-iss", state: OK},
		{name: "another's", response: from(honest), id: "login-iss", state: Broken, why: "clients must refuse the response"},
		{name: "a slash more", response: from("OWN/"), id: "login-iss", state: Broken, why: "clients must refuse the response"},
		{name: "empty", response: from(""), id: "login-iss", state: Broken, why: "clients must refuse the response"},
		{name: "promised but missing", response: from(), id: "login-iss", state: Broken, why: "promised in the metadata"},
		{name: "neither promised nor sent", response: from(), metadata: func(d map[string]any) { delete(d, promise) }, redeemed: true, id: "login-iss", state: Warn, why: "no iss"},
		{name: "not promised but sent", response: from("OWN"), metadata: func(d map[string]any) { delete(d, promise) }, redeemed: true, id: "login-iss", state: Broken, why: "does not promise it"},
		{name: "another's, not promised", response: from(honest), metadata: func(d map[string]any) { delete(d, promise) }, id: "login-iss", state: Broken, why: "clients must refuse the response"},
		{name: "its own and another's", response: from("OWN", honest), id: "login", state: Broken, why: "iss stands in the response 2 times"},
		{name: "two codes", id: "login", state: Broken, why: "code stands in the response 2 times", response: func(own, state string) url.Values {
			return url.Values{"code": {code, "another"}, "state": {state}, "iss": {own}}
		}},
		{name: "two states", id: "login", state: Broken, why: "state stands in the response 2 times", response: func(own, state string) url.Values {
			return url.Values{"code": {code}, "state": {state, "another"}, "iss": {own}}
		}},
		{name: "another state", id: "login", state: Broken, why: "another state", response: func(own, _ string) url.Values {
			return url.Values{"code": {code}, "state": {"another"}, "iss": {own}}
		}},
		{name: "another's error", id: "login-iss", state: Broken, why: "clients must refuse the response", response: func(_, state string) url.Values {
			return url.Values{"error": {"access_denied"}, "state": {state}, "iss": {honest}}
		}},
		{name: "the metadata is another's", response: from(honest), metadata: func(d map[string]any) { d["issuer"] = honest }, id: "metadata-issuer", state: Broken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.metadata = tt.metadata
			r := examine(t, f.logIn(func(state string) url.Values { return tt.response(f.URL, state) }))
			if got := finding(t, r, tt.id); got.State != tt.state || !strings.Contains(got.Why, tt.why) || strings.Contains(got.Why, code) {
				t.Errorf("%+v, want %s %q", got, tt.state, tt.why)
			}
			if got := f.redeemed(code); got != tt.redeemed {
				t.Errorf("redeemed: %t, want %t", got, tt.redeemed)
			}
			if got := finding(t, r, "login-token").State == Skipped; got == tt.redeemed {
				t.Errorf("login-token is skipped: %t", got)
			}
		})
	}
}

// A server that says that it has revoked, and has not, leaves a grant: the report
// lists it, and what the examination got afterwards is revoked too.
func TestC09_RevocationThatDoesNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		revocation int
		revokes    bool
		left       string
	}{
		{name: "revoked", revocation: http.StatusOK, revokes: true},
		{name: "said, not done", revocation: http.StatusOK, left: "a grant of client a-client"},
		{name: "refused", revocation: http.StatusServiceUnavailable, left: "a grant of client a-client"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, issued := newFake(t), 0
			f.revocation = tt.revocation
			f.token = func(url.Values) (int, map[string]any) {
				if tt.revokes && slices.Contains(f.revoked, fmt.Sprint("refresh-token-", issued)) {
					return http.StatusBadRequest, map[string]any{"error": "invalid_grant"}
				}
				issued++
				return http.StatusOK, map[string]any{"access_token": fmt.Sprint("access-token-", issued), "token_type": "Bearer", "expires_in": 600,
					"refresh_token": fmt.Sprint("refresh-token-", issued)}
			}
			r := examine(t, f.logIn(func(state string) url.Values {
				return url.Values{"code": {"a-code-of-this-one"}, "state": {state}, "iss": {f.URL}}
			}))
			if last := fmt.Sprint("refresh-token-", issued); issued < 2 || f.revoked[len(f.revoked)-1] != last {
				t.Errorf("%d issued, revoked %q", issued, f.revoked)
			}
			grants := slices.DeleteFunc(slices.Clone(r.Left), func(s string) bool { return !strings.HasPrefix(s, "a grant") })
			if strings.Join(grants, ", ") != tt.left {
				t.Errorf("left %q, want %q", r.Left, tt.left)
			}
			if got := finding(t, r, "refresh"); got.State != OK { // each of them was rotated
				t.Errorf("%+v", got)
			}
			if got := finding(t, r, "login-revoked").State == Broken; got != (tt.left != "") {
				t.Errorf("login-revoked is broken: %t", got)
			}
		})
	}
}
