package interop

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/internal/doctor"
)

// TestDoctorAtOtherIssuer examines node-oidc-provider with a log-in: what is found is
// what it lacks, and nothing else.
func TestDoctorAtOtherIssuer(t *testing.T) {
	t.Parallel()
	s := newStranger(t, serveOIDCProvider(t), bearerDoor)
	loopback := &authclient.Loopback{Open: s.browse}
	r, err := doctor.Examine(t.Context(), doctor.Options{URL: s.url, Write: true,
		Begin: func(ctx context.Context) (doctor.Attempt, error) { return loopback.Begin(ctx) }})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]doctor.State{}
	for _, f := range r.Findings {
		if f.State == doctor.Broken || f.State == doctor.Warn {
			got[f.ID] = f.State
		}
	}
	want := map[string]doctor.State{
		"browser-endpoints":    doctor.Broken, // no CORS at its registration endpoint
		"cimd-advertised":      doctor.Warn,
		"authorize-frames":     doctor.Warn, // its own error page
		"keys-cache":           doctor.Warn,
		"registration-removed": doctor.Warn, // RFC 7592 is off
	}
	if d := cmp.Diff(want, got); d != "" {
		var text bytes.Buffer
		_ = r.WriteText(&text, doctor.TextOptions{}) // a Buffer takes everything
		t.Errorf("findings (-want +got):\n%s\n%s", d, &text)
	}
	if len(r.Left) != 2 {
		t.Errorf("left: %q, want the two clients", r.Left)
	}
}
