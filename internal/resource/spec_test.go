package resource

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseScopeSpec(t *testing.T) {
	for _, tt := range []struct {
		spec    string
		want    Scope
		wantErr string
	}{
		{spec: "files:read=Read your files", want: Scope{Name: "files:read", Title: "Read your files"}},
		{spec: "files:read", want: Scope{Name: "files:read"}},
		{spec: "a=b=c", want: Scope{Name: "a", Title: "b=c"}},
		{spec: `a=One\; two \\ three`, want: Scope{Name: "a", Title: `One; two \ three`}},
		{spec: "files:delete=Delete files;risk=permanent;required;default;detail=Also those in the bin;implies=files:read, files:list;restricted;group=Files",
			want: Scope{Name: "files:delete", Title: "Delete files", Risk: RiskPermanent, Required: true, Default: true,
				Detail: "Also those in the bin", Implies: []string{"files:read", "files:list"}, Restricted: true, Group: "Files"}},
		{spec: "", wantErr: "no name"},
		{spec: "=Title", wantErr: "no name"},
		{spec: "a=b;", wantErr: "unknown field"},
		{spec: "a=b;colour=red", wantErr: "unknown field"},
		{spec: "a=b;required=yes", wantErr: "takes no value"},
		{spec: "a=b;risk", wantErr: "needs a value"},
		{spec: "a=b;implies=", wantErr: "needs a value"},
	} {
		got, err := ParseScopeSpec(tt.spec)
		if tt.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("ParseScopeSpec(%q) = %v, want an error with %q", tt.spec, err, tt.wantErr)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("ParseScopeSpec(%q): %v\n%s", tt.spec, err, diff)
		}
	}
}

func FuzzParseScopeSpec(f *testing.F) {
	f.Add("files:delete=Delete;risk=permanent;implies=a,b")
	f.Add(`a\;=\\`)
	f.Add(";;=")
	f.Fuzz(func(t *testing.T, spec string) {
		if s, err := ParseScopeSpec(spec); err == nil && s.Name == "" {
			t.Errorf("ParseScopeSpec(%q) has no name", spec)
		}
	})
}
