package doctor

import (
	"slices"
	"strings"
	"testing"
)

// The list of checks holds together: ids are unique, what one needs runs before it
// at the latest, and each says everything.
func TestChecks(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range Checks() {
		if seen[c.ID] {
			t.Errorf("two checks are called %s", c.ID)
		}
		seen[c.ID] = true
		if c.Hop == "" || c.Title == "" || c.Run == nil {
			t.Errorf("%s is not whole: %+v", c.ID, c)
		}
		if (c.Fix == "" || c.Reference == "") && c.ID != "access-token" { // which is never wrong, only missing
			t.Errorf("%s does not say what to change and where that is asked for", c.ID)
		}
		for _, need := range c.Needs {
			if !seen[need] {
				t.Errorf("%s needs %s, which does not run before it", c.ID, need)
			}
		}
	}
}

// The table of clients knows every check and nothing else.
func TestClients(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, row := range []string{pkceAbsent, rateLimited} {
		ids = append(ids, row)
		if len(knowledge().Breaks[row]) == 0 {
			t.Errorf("clients.json has no %s", row)
		}
	}
	for _, c := range Checks() {
		ids = append(ids, c.ID)
		if len(knowledge().Breaks[c.ID]) == 0 {
			t.Errorf("clients.json does not say who breaks on %s", c.ID)
		}
	}
	for check, effects := range knowledge().Breaks {
		if !slices.Contains(ids, check) {
			t.Errorf("clients.json knows %s, which is neither a check nor a row of its own", check)
		}
		for _, e := range effects {
			if e.How == "" || len(e.Who) == 0 && e.Others == "" {
				t.Errorf("%s: who breaks, and how does it show?", check)
			}
			for _, id := range e.Who {
				if _, found := knowledge().Client(id); !found && id != "*" {
					t.Errorf("%s: %s is no client", check, id)
				}
			}
		}
	}
	for _, c := range knowledge().Clients {
		w := c.Walk
		if w.First == "" || len(w.Places) == 0 || len(w.Forms) == 0 || len(w.FormPasses) == 0 || len(c.Registration) == 0 {
			t.Errorf("%s has no whole walk", c.ID)
		}
		for _, place := range w.Places {
			if !slices.Contains([]string{"named", "path", "root"}, place) {
				t.Errorf("%s looks at %s", c.ID, place)
			}
		}
		for _, f := range w.Forms {
			if !slices.ContainsFunc(issuerForms("https://a.example/b"), func(known form) bool { return known.name == f }) {
				t.Errorf("%s tries %s", c.ID, f)
			}
		}
		for _, value := range [][]string{{w.First, "GET", "POST"}, {w.Challenge, "first", "parsed"}, {w.Named, "any", "same origin"},
			{w.Identity, "exact", "parent", "none"}, {w.Without, "origin", "stop"}, {w.Issuer, "exact", "slash", "none"}, {w.PKCE, "required", "when listed", "no"}} {
			if !slices.Contains(value[1:], value[0]) {
				t.Errorf("%s: %q is none of %q", c.ID, value[0], value[1:])
			}
		}
	}
	for _, want := range []string{"claude-code", "vscode", "cursor", "chatgpt"} {
		if !slices.Contains(ClientIDs(), want) {
			t.Errorf("%s is not there", want)
		}
	}
}

func TestReadTable(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON":             `{`,
		"like nobody":         `{"clients":[{"id":"a","like":"b"}]}`,
		"like one like other": `{"clients":[{"id":"a","like":"b"},{"id":"b","like":"c"},{"id":"c"}]}`,
	} {
		if _, err := readTable([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "clients.json:") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"nothing", Options{}, "an MCP server or an issuer is needed"},
		{"another scheme", Options{URL: "ftp://a.example"}, "not an https URL"},
		{"no host", Options{URL: "https:///mcp"}, "names no host"},
		{"user", Options{URL: "https://user:pw@a.example"}, "holds a user name"},
		{"fragment", Options{URL: "https://a.example/#x"}, "fragment"},
		{"kind", Options{URL: "https://a.example", Kind: "client"}, "kind"},
		{"client", Options{URL: "https://a.example", As: "netscape"}, "no client is called"},
	} {
		if err := tt.o.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if _, err := Examine(t.Context(), tt.o); err == nil {
			t.Errorf("%s: it was examined", tt.name)
		}
	}
	if err := (&Options{URL: "https://a.example/mcp", Kind: KindIssuer, As: "vscode"}).Validate(); err != nil {
		t.Error(err)
	}
}
