package resource

import (
	"slices"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

func TestD13Narrow(t *testing.T) {
	declared := []Scope{
		{Name: "read", Default: true},
		{Name: "write", Implies: []string{"read"}},
		{Name: "all", Implies: []string{"write"}},
		{Name: "admin", Restricted: true, Default: true},
	}
	unmarked := []Scope{{Name: "admin", Restricted: true}, {Name: "read"}, {Name: "write"}}
	for _, tt := range []struct {
		name        string
		scopes      []Scope
		requested   string
		trusted     bool
		clientScope string
		want        string
		wantErr     bool
	}{
		{name: "order as requested", scopes: declared, requested: "write read", want: "write read"},
		{name: "repeats", scopes: declared, requested: "read write read", want: "read write"},
		{name: "SC-03 some unknown", scopes: declared, requested: "nope read other", want: "read"},
		{name: "SC-03 all unknown", scopes: declared, requested: "nope other", wantErr: true},
		{name: "SC-03 unknown and protocol scopes", scopes: declared, requested: "openid nope", wantErr: true},
		{name: "scopes are case-sensitive", scopes: declared, requested: "READ", wantErr: true},
		{name: "SC-04 restricted for an untrusted client", scopes: declared, requested: "read admin", want: "read"},
		{name: "SC-04 only restricted", scopes: declared, requested: "admin", wantErr: true},
		{name: "SC-04 restricted for a trusted client", scopes: declared, requested: "admin read", trusted: true, want: "admin read"},
		{name: "SC-04 never by default", scopes: declared, trusted: true, want: "read"},
		{name: "D26 protocol scopes are not granted", scopes: declared, requested: "openid read offline_access email", want: "read"},
		{name: "D26 only protocol scopes count as none", scopes: declared, requested: "openid profile email offline_access", want: "read"},
		{name: "none asked", scopes: declared, want: "read"},
		{name: "none asked, none marked: the first unrestricted", scopes: unmarked, want: "read"},
		{name: "none asked, all restricted", scopes: []Scope{{Name: "admin", Restricted: true}}, wantErr: true},
		{name: "required counts as default", scopes: []Scope{{Name: "a"}, {Name: "b", Required: true}, {Name: "c", Default: true}}, want: "b c"},
		{name: "A14 registration limits", scopes: declared, requested: "read write", clientScope: "read", want: "read"},
		{name: "A14 registration without scope limits nothing", scopes: declared, requested: "read write", want: "read write"},
		{name: "registered broad scope covers narrow ones", scopes: declared, requested: "read", clientScope: "all", want: "read"},
		{name: "registered narrow scope does not cover broad ones", scopes: declared, requested: "all write", clientScope: "read", wantErr: true},
		{name: "defaults outside the registration", scopes: declared, clientScope: "all-else", wantErr: true},
		{name: "nothing declared, some asked", requested: "x openid y", want: "x y"},
		{name: "nothing declared, none asked", want: ""},
		{name: "nothing declared, only protocol scopes", requested: "openid offline_access", want: ""},
		{name: "nothing declared, beyond the registration", requested: "x", clientScope: "y", wantErr: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			requested := strings.Fields(tt.requested)
			before := slices.Clone(requested)
			got, err := Resource{Scopes: tt.scopes}.Narrow(requested, tt.trusted, tt.clientScope)
			if strings.Join(got, " ") != tt.want || (err != nil) != tt.wantErr {
				t.Errorf("Narrow = %v, %v; want %q", got, err, tt.want)
			}
			if tt.wantErr && oauth.Code(err) != "invalid_scope" {
				t.Errorf("code = %q, want invalid_scope", oauth.Code(err))
			}
			if !slices.Equal(requested, before) {
				t.Errorf("the caller's slice became %v", requested)
			}
		})
	}
}

func TestSC01ScopeSyntax(t *testing.T) {
	for _, name := range []string{`a"b`, `a\b`, "a\x01b", "a\x7fb", "é", "a b", "", "\x00"} {
		if err := (Resource{Name: "x", Scopes: []Scope{{Name: name}}}).Check(); err == nil {
			t.Errorf("SC-01 scope %q can be declared", name)
		}
	}
	if got, err := (Resource{Scopes: []Scope{{Name: "read"}}}).Narrow([]string{"read", `"`}, true, ""); err != nil || !slices.Equal(got, []string{"read"}) {
		t.Errorf("SC-01 a scope that slipped through is granted: %v, %v", got, err)
	}
}

func TestCovers(t *testing.T) {
	r := Resource{Scopes: []Scope{
		{Name: "read"}, {Name: "write", Implies: []string{"read"}}, {Name: "all", Implies: []string{"write"}},
		{Name: "a", Implies: []string{"b"}}, {Name: "b", Implies: []string{"a"}},
	}}
	for _, tt := range []struct {
		have, name string
		want       bool
	}{
		{"read", "read", true}, {"write", "read", true}, {"all", "read", true}, {"read", "write", false},
		{"a", "b", true}, {"a b", "read", false}, {"", "read", false}, {"other", "other", true},
	} {
		if got := r.Covers(strings.Fields(tt.have), tt.name); got != tt.want {
			t.Errorf("Covers(%q, %q) = %v, want %v", tt.have, tt.name, got, tt.want)
		}
	}
}
