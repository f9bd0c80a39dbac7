package oauth_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

func TestParseScope(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		want      []string
		wantCode  string
	}{
		{name: "none", raw: ""},
		{name: "order is kept, repeats go", raw: "b a b", want: []string{"b", "a"}},
		{name: "spaces may lead, repeat and trail", raw: "  a   b ", want: []string{"a", "b"}},
		{name: "every allowed character", raw: "!#[]~", want: []string{"!#[]~"}},
		{name: "SC-01 quote", raw: `a"b`, wantCode: "invalid_scope"},
		{name: "SC-01 backslash", raw: `a\b`, wantCode: "invalid_scope"},
		{name: "SC-01 control", raw: "a\tb", wantCode: "invalid_scope"},
		{name: "SC-01 non-ASCII", raw: "läsa", wantCode: "invalid_scope"},
		{name: "too long a token", raw: strings.Repeat("a", 257), wantCode: "invalid_scope"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := oauth.ParseScope(tt.raw)
			if oauth.Code(err) != tt.wantCode || !slices.Equal(got, tt.want) {
				t.Errorf("ParseScope = %v, %v", got, err)
			}
		})
	}
	many := make([]string, 201)
	for i := range many {
		many[i] = "s" + strings.Repeat("x", i)
	}
	if _, err := oauth.ParseScope(strings.Join(many, " ")); oauth.Code(err) != "invalid_scope" {
		t.Errorf("201 scopes: %v", err)
	}
}

func FuzzScope(f *testing.F) {
	for _, seed := range []string{"", "a", "files:read  files:write", "a a", `"`, "\x00", "ä", "offline_access openid"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		scopes, err := oauth.ParseScope(raw)
		if err != nil {
			if oauth.Code(err) != "invalid_scope" || scopes != nil {
				t.Fatalf("ParseScope = %v, %v", scopes, err)
			}
			return
		}
		again, err := oauth.ParseScope(strings.Join(scopes, " "))
		if err != nil || !slices.Equal(again, scopes) {
			t.Fatalf("parsed again: %v, %v, want %v", again, err, scopes)
		}
		for _, s := range scopes {
			if !oauth.IsScopeToken(s) || !strings.Contains(raw, s) {
				t.Fatalf("%q is no scope of the input", s)
			}
		}
	})
}
