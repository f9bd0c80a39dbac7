package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

const policyExample = `issuers:
  - issuer: https://login.example.com/realms/main
    profile: keycloak
    algorithms: [RS256]
    jwks_file: keys.json
    allow_audiences: [mcp]
    scope_claims: [scope, roles]
    scope_prefix: "notes/"
  - issuer: https://auth.example.com
    introspection:
      client_id: gateway
      client_secret_file: secret
      also_jwt: true
      token_prefix: auth_at_
      max_age: 10s
tools:
  list_notes: ["notes:read"]
  add_note: ["notes:read", "notes:write"]
  about: []
prompts:
  summary: ["notes:read"]
resources:
  "notes://public/*": []
  "notes://one": ["notes:read"]
methods:
  completion/complete: ["notes:read"]
default: [admin]
implies:
  notes: ["notes:read", "notes:write"]
filter_lists: true
`

func TestPolicy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"notes.yaml": policyExample, "keys.json": `{"keys":[]}`, "secret": "hunter2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got resourceserver.Options
	if err := ReadPolicy(filepath.Join(dir, "notes.yaml"), &got); err != nil {
		t.Fatal(err)
	}
	type op = resourceserver.Operation
	want := resourceserver.Options{
		Issuers: []resourceserver.Issuer{
			{Identifier: "https://login.example.com/realms/main", Profile: resourceserver.ProfileKeycloak, Algorithms: []string{"RS256"},
				JWKS: []byte(`{"keys":[]}`), AllowAudiences: []string{"mcp"}, ScopeClaims: []string{"scope", "roles"}, ScopePrefix: "notes/"},
			{Identifier: "https://auth.example.com", Introspection: &resourceserver.Introspection{ClientID: "gateway", ClientSecret: "hunter2",
				AlsoJWT: true, TokenPrefix: "auth_at_", MaxAge: 10e9}},
		},
		Operations: map[op][]string{
			{Method: "tools/call", Name: "list_notes"}:                   {"notes:read"},
			{Method: "tools/call", Name: "add_note"}:                     {"notes:read", "notes:write"},
			{Method: "tools/call", Name: "about"}:                        {},
			{Method: "prompts/get", Name: "summary"}:                     {"notes:read"},
			{Method: "resources/read", Prefix: "notes://public/"}:        {},
			{Method: "resources/subscribe", Prefix: "notes://public/"}:   {},
			{Method: "resources/unsubscribe", Prefix: "notes://public/"}: {},
			{Method: "resources/read", Name: "notes://one"}:              {"notes:read"},
			{Method: "resources/subscribe", Name: "notes://one"}:         {"notes:read"},
			{Method: "resources/unsubscribe", Name: "notes://one"}:       {"notes:read"},
			{Method: "completion/complete"}:                              {"notes:read"},
		},
		DefaultScopes: []string{"admin"},
		Implies:       map[string][]string{"notes": {"notes:read", "notes:write"}},
		FilterLists:   true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is not in the table is refused, unless the file says otherwise; a file
// of issuers alone makes none.
func TestPolicyDefault(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text            string
		table, fallback bool
	}{
		{"issuers:\n  - issuer: https://a.example", false, false},
		{"tools: {a: [b]}", true, false},
		{"tools: {}", true, false},
		{"tools:\n# a: [b]", true, false},
		{"default:", true, false},
		{"default: []", true, true},
		{"default: [a]", true, true},
	} {
		var o resourceserver.Options
		if err := parsePolicy([]byte(tt.text), "p.yaml", &o); err != nil {
			t.Errorf("%q: %v", tt.text, err)
		}
		if (o.Operations != nil) != tt.table || (o.DefaultScopes != nil) != tt.fallback {
			t.Errorf("%q: table %v, default %v", tt.text, o.Operations, o.DefaultScopes)
		}
	}
}

// Each mistake names the file, its line and what to do.
func TestPolicyMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"unknown key", "tools: {}\ntolls: {}", `p.yaml line 2: there is no setting "tolls"; there are issuers, tools,`},
		{"unknown key of an issuer", "issuers:\n  - issuer: https://a.example\n    audience: x", `p.yaml line 3: there is no setting "audience"; there are issuer,`},
		{"unknown key of introspection", "issuers:\n  - issuer: https://a.example\n    introspection:\n      secret: x",
			`p.yaml line 4: there is no setting "secret"; there are endpoint,`},
		{"issuer without one", "issuers:\n  - profile: entra", "p.yaml line 2: an issuer needs its identifier"},
		{"profile", "issuers:\n  - issuer: https://a.example\n    profile: azure", `p.yaml line 2: profile "azure" is none of rfc9068,`},
		{"scope as text", "tools:\n  a: notes:read", "p.yaml line 2: a needs a list of scopes in brackets"},
		{"scope missing", "tools:\n  a:", "p.yaml line 2: a needs a list of scopes in brackets"},
		{"two scopes in one", "tools:\n  a: [\"b c\"]", `p.yaml line 2: "b c" is not a scope`},
		{"twice", "tools:\n  a: [b]\n  a: [c]", `p.yaml line 3: "a" is not a name, or is there twice`},
		{"table as list", "tools:\n  - a", "p.yaml line 2: this must be a mapping"},
		{"issuers as text", "issuers: [https://a.example]", "p.yaml line 1: this must be a mapping"},
		{"default as text", "default: a", "p.yaml line 1: "},
		{"default is no scope", "default: [\"a b\"]", `"a b" is not a scope`},
		{"duration", "issuers:\n  - issuer: https://a.example\n    introspection:\n      max_age: soon", "p.yaml line 4: cannot unmarshal str `soon` into a duration such as 30s"},
		{"implies", "implies:\n  \"a b\": [c]", `p.yaml line 2: "a b" is not a scope`},
		{"file", "issuers:\n  - issuer: https://a.example\n    jwks_file: none.json", "p.yaml line 2: jwks_file: open"},
		{"two documents", "tools: {}\n---\ntools: {}", "p.yaml has a second YAML document"},
		{"no YAML", "\t", "p.yaml: "},
		{"empty", "", "p.yaml has neither a table"},
		{"commented out", "# tools:\n#   a: [b]\n", "p.yaml has neither a table"},
		{"null", "~\n", "p.yaml has neither a table"},
		{"nothing in it", "{}\n", "p.yaml has neither a table"},
		{"implies alone", "implies: {a: [b]}\n", "p.yaml has neither a table"},
		{"two mistakes", "issuers:\n  - profile: entra\nimplies:\n  \"a b\": [c]", "p.yaml line 4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := parsePolicy([]byte(tt.text), filepath.Join(t.TempDir(), "p.yaml"), &resourceserver.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want %q", err, tt.want)
			}
		})
	}
}

// FuzzPolicy reads whatever an editor leaves behind: it never panics, and what it
// reads as a table is one.
func FuzzPolicy(f *testing.F) {
	for _, s := range []string{policyExample, "", "tools: {a: [b]}", "default: []", "a: &a [*a]", "tools: &t {a: [b]}\nprompts: *t", "<<: {tools: {}}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var o resourceserver.Options
		if err := parsePolicy(data, "p.yaml", &o); err != nil {
			return
		}
		for op, scopes := range o.Operations {
			if op.Method == "" || scopes == nil {
				t.Errorf("%+v needs %v", op, scopes)
			}
		}
	})
}

// The file in docs/gateway.md is good, and a gateway can be made of it.
func TestDocumentedPolicy(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "gateway.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```yaml\n")
	text, _, closed := strings.Cut(rest, "```")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("hunter2"), 0o600); err != nil || !found || !closed {
		t.Fatalf("the page has no file: %v", err)
	}
	o := Options{Upstream: "http://127.0.0.1:1/mcp", ResourceServer: resourceserver.Options{Resource: "https://mcp.example.com/mcp"}}
	if err := parsePolicy([]byte(text), filepath.Join(dir, "notes.yaml"), &o.ResourceServer); err != nil {
		t.Fatal(err)
	}
	if _, err := New(o); err != nil {
		t.Error(err)
	}
	if n := len(o.ResourceServer.Operations); n < 8 || len(o.ResourceServer.Issuers) != 2 {
		t.Errorf("%d operations, %d issuers", n, len(o.ResourceServer.Issuers))
	}
}
