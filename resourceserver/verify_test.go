package resourceserver_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	good := f.token(t, "notes:read")
	token, err := f.server.Verify(t.Context(), good)
	if err != nil || token.Subject == "" || !token.HasScopes("notes:read") {
		t.Fatalf("Verify = %+v, %v", token, err)
	}
	for name, raw := range map[string]string{
		"empty": "", "JW-04 huge": strings.Repeat("a", 1<<20), "JW-02 two tokens": good + " " + good,
		"changed": good[:len(good)-4] + "AAAA", "JW-15 aud": f.issuer.sign(t, header("ES256", "ec-1"),
			f.issuer.claims("https://other.example.com/mcp", f.clock(), "notes:read")),
	} {
		if token, err := f.server.Verify(t.Context(), raw); !errors.Is(err, resourceserver.ErrInvalidToken) || token != nil {
			t.Errorf("%s: Verify = %+v, %v; want ErrInvalidToken", name, token, err)
		}
	}
}

// M8: what cannot be checked is nobody's fault, and the text says nothing of why.
func TestM8_VerifyWithoutIssuer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *resourceserver.Options) {
		o.HTTPClient = &http.Client{Transport: refuseAll{}}
	})
	token, err := f.server.Verify(t.Context(), f.token(t, "notes:read"))
	if token != nil || err == nil || errors.Is(err, resourceserver.ErrInvalidToken) || strings.Contains(err.Error(), "secret network") {
		t.Errorf("Verify = %+v, %v", token, err)
	}
}

type refuseAll struct{}

func (refuseAll) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("secret network is down")
}

func TestTools(t *testing.T) {
	t.Parallel()
	got := resourceserver.Tools(map[string][]string{"a": {"x", "y"}, "b": {}})
	want := map[resourceserver.Operation][]string{
		{Method: "tools/call", Name: "a"}: {"x", "y"}, {Method: "tools/call", Name: "b"}: {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// A table without entries refuses; a nil one would open everything.
	if resourceserver.Tools(nil) == nil {
		t.Error("Tools(nil) is nil")
	}
}

// Server.Allows knows what a scope implies, Token.HasScopes does not.
func TestHasScopesIgnoresImplies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *resourceserver.Options) { o.Implies = map[string][]string{"notes": {"notes:read"}} })
	token, err := f.server.Verify(t.Context(), f.token(t, "notes"))
	if err != nil || token.HasScopes("notes:read") || !f.server.Allows(token, "notes:read") {
		t.Errorf("token %+v, %v: HasScopes should ignore Implies, Allows should not", token, err)
	}
}
