package resourceserver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScopesFor(t *testing.T) {
	t.Parallel()
	table := newTable(Options{
		Operations: map[Operation][]string{
			{Method: "tools/call", Name: "read"}:                          {"files:read"},
			{Method: "resources/read", Prefix: "file:///notes/"}:          {"notes"},
			{Method: "resources/read", Prefix: "file:///notes/personal/"}: {"notes", "personal"},
			{Method: "resources/read", Name: "file:///notes/personal/a"}:  {"a"},
			{Method: "resources/read", Name: "FILE:///b"}:                 {"b"},
			{Method: "resources/read", Prefix: "notes://"}:                {"read"},
			{Method: "resources/read", Prefix: "notes://personal/"}:       {"personal"},
			{Method: "resources/read", Prefix: "notes://shared:81/"}:      {"shared"},
			{Method: "resources/read"}:                                    {"read"},
			{Method: "resources/subscribe"}:                               {"watch"},
			{Method: "prompts/get"}:                                       {"prompt"},
			{Method: "tools/list"}:                                        {"list"},
		},
		DefaultScopes: []string{"all"},
	})
	for _, tt := range []struct {
		name, method, of string
		want             []string
	}{
		{"tool by name", "tools/call", "read", []string{"files:read"}},
		{"tool by another case", "tools/call", "Read", []string{"all"}},
		{"tool unknown", "tools/call", "write", []string{"all"}},
		{"method unknown", "admin/wipe", "", []string{"all"}},
		{"tasks are operations", "tasks/get", "", []string{"all"}},
		{"listed open method", "tools/list", "", []string{"list"}},
		{"open method", "initialize", "", nil},
		{"notification", "notifications/cancelled", "", nil},
		{"whole method", "prompts/get", "p", []string{"prompt"}},
		{"by prefix", "resources/read", "file:///notes/x", []string{"notes"}},
		{"by the longer prefix", "resources/read", "file:///notes/personal/x", []string{"notes", "personal"}},
		{"by name before prefix", "resources/read", "file:///notes/personal/a", []string{"a"}},
		{"by name, however it is spelled", "resources/read", "FILE:///b", []string{"b"}},
		{"outside the prefixes", "resources/read", "file:///other", []string{"read"}},
		{"not a whole segment", "resources/read", "file:///notes", []string{"read"}},
		{"escape that must be one", "resources/read", "file:///notes/%C3%A4", []string{"notes"}},
		{"authority without a path", "resources/read", "notes://personal", []string{"personal"}},
		{"query without a path", "resources/read", "notes://personal?/x", []string{"personal"}},
		{"another authority", "resources/read", "notes://personals/x", []string{"read"}},
		{"scheme that has no slashes", "resources/read", "urn:isbn:1", []string{"read"}},
		{"port of a prefix", "resources/read", "notes://shared:81/x", []string{"shared"}},
		{"method that tells no resources apart", "resources/subscribe", "file:///a/../b", []string{"watch"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := table.scopesFor(Operation{Method: tt.method, Name: tt.of})
			if d := cmp.Diff(tt.want, got); d != "" || !ok {
				t.Errorf("scopesFor = %v, %v (-want +got):\n%s", got, ok, d)
			}
		})
	}
	for name, uri := range map[string]string{
		"dot segments":             "file:///other/../notes/personal/x",
		"dot segments to a name":   "file:///x/../notes/personal/a",
		"encoded dot segments":     "file:///other/%2e%2e/notes/personal/x",
		"encoded slash":            "file:///notes%2Fpersonal/x",
		"encoded letter":           "file:///notes/%70ersonal/x",
		"encoded letter of a name": "file:///notes/personal/%61",
		"escape in lower case":     "file:///notes/%c3%a4",
		"double escape":            "file:///notes/%2570ersonal/x",
		"backslash":                `file:///notes\personal\x`,
		"empty segment":            "file:////notes/personal/x",
		"scheme in upper case":     "FILE:///notes/personal/x",
		"no authority":             "file:/notes/personal/x",
		"named authority":          "file://localhost/notes/personal/x",
		"not ASCII":                "file:///notes/perſonal",
		"not a URI":                "notes",
		"user information":         "notes://me@personal/x",
		"no slashes":               "notes:personal/x",
		"port":                     "notes://personal:1/x",
		"port without a number":    "notes://personal:/x",
		"port with a zero":         "notes://shared:081/x",
		"port beyond all":          "notes://shared:65617/x",
		"host with a dot":          "notes://personal./x",
		"host in upper case":       "notes://Personal/x",
	} {
		t.Run("neither default nor whole method opens another spelling: "+name, func(t *testing.T) {
			t.Parallel()
			if got, ok := table.scopesFor(Operation{Method: "resources/read", Name: uri}); ok {
				t.Errorf("scopesFor(%q) = %v, want a refusal", uri, got)
			}
		})
	}
	t.Run("zero value denies", func(t *testing.T) {
		t.Parallel()
		none := newTable(Options{Operations: map[Operation][]string{}})
		for _, op := range []Operation{{Method: "tools/call", Name: "a"}, {Method: "admin/wipe"}, {Method: "resources/read", Name: "a:b"}} {
			if scopes, ok := none.scopesFor(op); ok {
				t.Errorf("%v is open with %v", op, scopes)
			}
		}
	})
	t.Run("completion needs what it completes", func(t *testing.T) {
		t.Parallel()
		for ref, want := range map[string]string{
			`{"type":"ref/prompt","name":"p"}`:                            "prompt",
			`{"type":"ref/prompt","name":"file:///notes/x"}`:              "prompt",
			`{"type":"ref/resource","uri":"file:///notes/{id}"}`:          "notes",
			`{"type":"ref/resource","uri":"file:///notes/personal/{id}"}`: "notes personal",
			`{"type":"ref/resource","uri":"file:///{+path}"}`:             "read",
		} {
			list, _, err := readMessages([]byte(`{"id":1,"method":"completion/complete","params":{"ref":` + ref + `}}`))
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := table.needs(list); !ok || joinScopes(got) != want {
				t.Errorf("%s needs %v, %v; want %s", ref, got, ok, want)
			}
		}
	})
}

func TestNewRefusesOperations(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"no method", Options{Operations: map[Operation][]string{{Name: "a"}: nil}}, "no Method"},
		{"prefix of a tool", Options{Operations: map[Operation][]string{{Method: "tools/call", Prefix: "a/"}: nil}}, "method of resources"},
		{"prefix and name", Options{Operations: map[Operation][]string{{Method: "resources/read", Prefix: "a:/", Name: "a:/b"}: nil}}, "no Name"},
		{"prefix in a segment", Options{Operations: map[Operation][]string{{Method: "resources/read", Prefix: "file:///a"}: nil}}, "delimiter"},
		{"prefix with dots", Options{Operations: map[Operation][]string{{Method: "resources/read", Prefix: "file:///a/../"}: nil}}, "delimiter"},
		{"implied scope with a quote", Options{Implies: map[string][]string{"a": {`b"`}}}, "scope-token"},
		{"lists without a table", Options{FilterLists: true}, "needs Operations"},
		{"default scopes without a table", Options{DefaultScopes: []string{"a"}}, "needs Operations"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.o.Issuer, tt.o.Resource = "https://login.example.com", "https://mcp.example.com/mcp"
			if _, err := New(tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, want an error about %q", err, tt.want)
			}
		})
	}
}

func TestImplies(t *testing.T) {
	t.Parallel()
	s := &Server{implied: closure(map[string][]string{"admin": {"files"}, "files": {"files:read", "files:write"}, "files:write": {"files"}})}
	for _, tt := range []struct {
		have, needed, want string // want is what is missing
	}{
		{"files", "files:read files:write", ""},
		{"admin", "files:read", ""},
		{"files:write", "files:read", ""}, // by files, which it names
		{"files:read", "files files:write", "files files:write"},
		{"file", "files:read", "files:read"}, // a prefix alone covers nothing
		{"", "files:read files:read", "files:read"},
	} {
		got := s.missing(&Token{Scopes: strings.Fields(tt.have)}, strings.Fields(tt.needed))
		if joinScopes(got) != tt.want {
			t.Errorf("%q misses %v of %q, want %q", tt.have, got, tt.needed, tt.want)
		}
	}
	if s.Allows(nil, "files") {
		t.Error("no token allows something")
	}
}
