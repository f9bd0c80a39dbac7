package resource

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// rows is a Store that only reads.
type rows []Resource

func (s rows) ListResources(context.Context) ([]Resource, error) { return s, nil }

func (s rows) GetResource(_ context.Context, canonical string) (Resource, error) {
	for _, r := range s {
		if r.Canonical == canonical {
			return r, nil
		}
	}
	return Resource{}, store.ErrNotFound
}

func (rows) CreateResource(context.Context, Resource) error { return errors.ErrUnsupported }
func (rows) UpdateResource(context.Context, Resource) error { return errors.ErrUnsupported }
func (rows) DeleteResource(context.Context, string) error   { return errors.ErrUnsupported }

// registered returns a row for each identifier; one that begins with * is the default.
func registered(t testing.TB, identifiers ...string) rows {
	t.Helper()
	var list rows
	for _, id := range identifiers {
		id, isDefault := strings.CutPrefix(id, "*")
		canonical, err := oauth.CanonicalResource(id)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, Resource{Identifier: id, Canonical: canonical, Name: id, Default: isDefault})
	}
	return list
}

const (
	files = "https://mcp.example/files"
	mail  = "https://mail.example/"
	local = "http://localhost:9000/mcp"
	// issuer is of development mode.
	issuer = "http://localhost:8414"
)

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rows   []string
		values []string
		dev    bool
		origin bool
		want   string // identifier; "" is invalid_target
	}{
		{name: "exact", rows: []string{files, mail}, values: []string{files}, want: files},
		{name: "A23 trailing slash added", rows: []string{files}, values: []string{files + "/"}, want: files},
		{name: "A23 trailing slash missing", rows: []string{mail}, values: []string{"https://mail.example"}, want: mail},
		{name: "A23 case of scheme and host, default port", rows: []string{files}, values: []string{"HTTPS://MCP.example:443/files"}, want: files},
		{name: "A23 path is case-sensitive", rows: []string{files}, values: []string{"https://mcp.example/Files"}},
		{name: "A24 descendant", rows: []string{files}, values: []string{files + "/v1/sse"}, want: files},
		{name: "A24 by segment, not by prefix", rows: []string{files}, values: []string{files + "x"}},
		{name: "A24 nearest parent wins", rows: []string{"https://mcp.example", files}, values: []string{files + "/v1"}, want: files},
		{name: "A24 parent is not its child", rows: []string{files}, values: []string{"https://mcp.example"}},
		{name: "A24 dot segments reach nothing", rows: []string{files, "https://mcp.example/admin"}, values: []string{files + "/../admin"}},
		{name: "A24 encoded dot segments are no descendant", rows: []string{files}, values: []string{files + "/%2e%2e/admin"}},
		{name: "A24 origin rule", rows: []string{files, mail}, values: []string{"https://mcp.example/"}, origin: true, want: files},
		{name: "A24 origin rule, two live there", rows: []string{files, "https://mcp.example/other"}, values: []string{"https://mcp.example"}, origin: true},
		{name: "A24 origin rule is for bare origins", rows: []string{files}, values: []string{"https://mcp.example/else"}, origin: true},
		{name: "A24 origin rule, other port", rows: []string{files}, values: []string{"https://mcp.example:8443"}, origin: true},
		{name: "D5 repeats of one are one", rows: []string{files, mail}, values: []string{files, files + "/", files + "/v1"}, want: files},
		{name: "D5 two resources", rows: []string{files, mail}, values: []string{files, mail}},
		{name: "D5 one known, one unknown", rows: []string{files}, values: []string{files, "https://evil.example"}},
		{name: "D5 too many", rows: []string{files}, values: slices.Repeat([]string{files}, 21)},
		{name: "AU-01 unknown", rows: []string{files}, values: []string{"https://evil.example/files"}},
		{name: "AU-01 unknown http", rows: []string{files}, values: []string{"http://mcp.example/files"}},
		{name: "AU-01 unknown although there is a default", rows: []string{"*" + files}, values: []string{"https://evil.example"}},
		{name: "AU-02 relative", rows: []string{files}, values: []string{"/files"}},
		{name: "AU-02 fragment", rows: []string{files}, values: []string{files + "#x"}},
		{name: "AU-02 empty fragment", rows: []string{files}, values: []string{files + "#"}},
		{name: "AU-02 empty", rows: []string{files}, values: []string{""}},
		{name: "AU-02 not a URL", rows: []string{files}, values: []string{"files"}},
		{name: "AU-02 8 KiB", rows: []string{files}, values: []string{files + "/" + strings.Repeat("a", 8<<10)}},
		{name: "AU-02 userinfo", rows: []string{files}, values: []string{"https://mcp.example@evil.example/files"}},
		{name: "AU-02 urn", rows: []string{files}, values: []string{"urn:mcp:files"}},
		{name: "ST-07 NUL", rows: []string{files}, values: []string{files + "\x00"}},
		{name: "ST-07 invalid UTF-8", rows: []string{files}, values: []string{files + "\xff"}},
		{name: "ST-07 SQL", rows: []string{files}, values: []string{"https://mcp.example/' OR '1'='1"}},
		{name: "AU-10 omitted, one registered", rows: []string{files}, want: files},
		{name: "AU-10 omitted, default", rows: []string{files, "*" + mail}, want: mail},
		{name: "AU-10 omitted, no default", rows: []string{files, mail}},
		{name: "AU-10 omitted, none registered", dev: true},
		{name: "AU-10 omitted and empty differ", rows: []string{files}, values: []string{""}},
		{name: "D4 loopback in development mode", dev: true, values: []string{local + "/"}, want: local},
		{name: "D4 IPv4 literal", dev: true, values: []string{"http://127.0.0.1:9000"}, want: "http://127.0.0.1:9000"},
		{name: "D4 IPv6 literal", dev: true, values: []string{"http://[::1]:9000/"}, want: "http://[::1]:9000"},
		{name: "D4 registered one wins", dev: true, rows: []string{local + "/"}, values: []string{local}, want: local + "/"},
		{name: "D4 https loopback must be registered", dev: true, values: []string{"https://localhost:9000"}},
		{name: "D4 other host", dev: true, values: []string{"http://mcp.example"}},
		{name: "D4 name that begins like localhost", dev: true, values: []string{"http://localhost.evil.example"}},
		{name: "D4 only in development mode", values: []string{local}},
		{name: "D7 the issuer is no resource", dev: true, values: []string{issuer + "/"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := Registry{Store: registered(t, tt.rows...), Issuer: issuer, Dev: tt.dev, OriginMatch: tt.origin}
			r, err := g.Find(t.Context(), tt.values)
			if r.Identifier != tt.want {
				t.Errorf("identifier = %q, want %q (%v)", r.Identifier, tt.want, err)
			}
			if code := oauth.Code(err); (tt.want == "") != (code == "invalid_target") {
				t.Errorf("code = %q (%v)", code, err)
			}
		})
	}
}

func TestFindUnregistered(t *testing.T) {
	g := Registry{Store: rows{}, Issuer: issuer, Dev: true}
	r, err := g.Find(t.Context(), []string{local})
	if err != nil || !r.Unregistered || r.Name != "localhost:9000/mcp" || r.Canonical != r.Identifier {
		t.Errorf("Find = %+v, %v", r, err)
	}
	again, err := g.ByIdentifier(t.Context(), r.Identifier)
	if err != nil || again.Identifier != r.Identifier || !again.Unregistered {
		t.Errorf("ByIdentifier = %+v, %v", again, err)
	}
}

func TestByIdentifier(t *testing.T) {
	g := Registry{Store: registered(t, mail), Issuer: issuer}
	if r, err := g.ByIdentifier(t.Context(), mail); err != nil || r.Identifier != mail {
		t.Errorf("ByIdentifier = %+v, %v", r, err)
	}
	for _, id := range []string{files, local, "", "https://mail.example/below"} {
		if _, err := g.ByIdentifier(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("ByIdentifier(%q) = %v, want ErrNotFound", id, err)
		}
	}
}

func TestD26SupportedScopes(t *testing.T) {
	list := registered(t, files, mail)
	list[0].Scopes = []Scope{{Name: "read", Default: true}, {Name: "write"}, {Name: "admin", Restricted: true, Default: true}}
	list[1].Scopes = []Scope{{Name: "send", Required: true}, {Name: "read", Default: true}}
	g := Registry{Store: list}
	got, err := g.SupportedScopes(t.Context())
	if want := []string{"read", "send", "offline_access"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("SupportedScopes = %v, %v; want %v", got, err, want)
	}
}

func FuzzFind(f *testing.F) {
	for _, seed := range []string{files, files + "/", mail, local, "https://mcp.example/files/%2e%2e/x", "http://[::1]:1/",
		"https://MCP.example:443/files?x=1", "https://mcp.example//files", "https:///x", "http://localhost:8414/"} {
		f.Add(seed)
	}
	g := Registry{Store: registered(f, files, mail), Issuer: issuer, Dev: true, OriginMatch: true}
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := g.Find(context.Background(), []string{raw})
		if err != nil {
			if oauth.Code(err) != "invalid_target" {
				t.Errorf("Find(%q) = %v", raw, err)
			}
			return
		}
		if !r.Unregistered && r.Identifier != files && r.Identifier != mail {
			t.Errorf("Find(%q) found %q", raw, r.Identifier)
		}
		if again, err := oauth.CanonicalResource(r.Canonical); err != nil || again != r.Canonical {
			t.Errorf("Find(%q): canonical form %q is not stable: %q, %v", raw, r.Canonical, again, err)
		}
		if r.Unregistered && (!strings.HasPrefix(r.Identifier, "http://") || r.Canonical == issuer) {
			t.Errorf("Find(%q) admits %q unregistered", raw, r.Identifier)
		}
	})
}
