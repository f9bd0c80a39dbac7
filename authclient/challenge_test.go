package authclient

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestC1_ParseChallenges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		headers []string
		want    []authChallenge
	}{
		{name: "none"},
		{name: "empty", headers: []string{""}},
		{name: "a scheme alone", headers: []string{"Bearer"}, want: []authChallenge{{scheme: "bearer", params: map[string]string{}}}},
		{name: "quoted commas", headers: []string{`Bearer realm="a, b=\"c\", Basic", scope="x y"`},
			want: []authChallenge{{scheme: "bearer", params: map[string]string{"realm": `a, b="c", Basic`, "scope": "x y"}}}},
		{name: "several in one header", headers: []string{`Negotiate, Basic realm="x", BEARER Error=invalid_token`}, want: []authChallenge{
			{scheme: "negotiate", params: map[string]string{}},
			{scheme: "basic", params: map[string]string{"realm": "x"}},
			{scheme: "bearer", params: map[string]string{"error": "invalid_token"}}}},
		{name: "several headers", headers: []string{`Basic realm="x"`, `Bearer scope="a"`}, want: []authChallenge{
			{scheme: "basic", params: map[string]string{"realm": "x"}}, {scheme: "bearer", params: map[string]string{"scope": "a"}}}},
		{name: "token68", headers: []string{`Negotiate YWJj==, Bearer scope="a"`}, want: []authChallenge{
			{scheme: "negotiate", token68: "YWJj==", params: map[string]string{}}, {scheme: "bearer", params: map[string]string{"scope": "a"}}}},
		{name: "spaces around the equals sign and empty elements", headers: []string{`Bearer ,, scope = "a" ,, error="e",`},
			want: []authChallenge{{scheme: "bearer", params: map[string]string{"scope": "a", "error": "e"}}}},
		{name: "a URL without quotes", headers: []string{`Bearer resource_metadata=https://mcp.example/x?y=z, scope="a"`},
			want: []authChallenge{{scheme: "bearer", params: map[string]string{"resource_metadata": "https://mcp.example/x?y=z", "scope": "a"}}}},
		{name: "a repeated parameter", headers: []string{`Bearer scope="a", SCOPE="b", Basic realm="x"`},
			want: []authChallenge{{scheme: "basic", params: map[string]string{"realm": "x"}}}},
		{name: "a string without end", headers: []string{`Bearer scope="a", error="x`},
			want: []authChallenge{{scheme: "bearer", params: map[string]string{"scope": "a"}}}},
		{name: "no scheme", headers: []string{`="x"`, `"Bearer"`}},
		{name: "too long", headers: []string{"Bearer scope=" + strings.Repeat("a", maxChallengeBytes)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, parseChallenges(tt.headers), cmp.AllowUnexported(authChallenge{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadChallenge(t *testing.T) {
	t.Parallel()
	h := http.Header{"Www-Authenticate": {
		`Basic resource_metadata="https://evil.example", scope="root"`,
		`Bearer error="insufficient_scope"`,
		`DPoP algs="ES256", resource_metadata="https://mcp.example/doc", scope="a  b a"`}}
	want := challenge{resourceMetadata: "https://mcp.example/doc", err: "insufficient_scope", scopes: []string{"a", "b"}}
	if diff := cmp.Diff(want, readChallenge(h), cmp.AllowUnexported(challenge{})); diff != "" {
		t.Error(diff)
	}
}

func FuzzChallenges(f *testing.F) {
	for _, s := range []string{`Bearer realm="a, b", scope="x"`, `Negotiate YWJj==, Basic`, `Bearer a=b,a=c`, `Bearer x="\"`, ", ,=", "Bearer\tx = y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list := parseChallenges([]string{s, s})
		if len(list) > maxChallenges {
			t.Fatalf("%d challenges", len(list))
		}
		for _, c := range list {
			if c.scheme == "" || c.scheme != strings.ToLower(c.scheme) {
				t.Errorf("scheme %q", c.scheme)
			}
			for name := range c.params {
				if name == "" || name != strings.ToLower(name) {
					t.Errorf("parameter %q", name)
				}
			}
		}
		for _, scope := range readChallenge(http.Header{"Www-Authenticate": {s}}).scopes {
			if strings.ContainsAny(scope, " \"\\\r\n") {
				t.Errorf("scope %q", scope)
			}
		}
	})
}
