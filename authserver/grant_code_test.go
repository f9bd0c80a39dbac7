package authserver

import (
	"crypto/sha256"
	"encoding/base64"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
)

// TestPK10: nothing but the one constant-time comparison looks at verifier and
// challenge: what it says is the answer, also where it is wrong.
func TestPK10_VerifierComparison(t *testing.T) {
	t.Parallel()
	const verifier = "verifier-verifier-verifier-verifier-verifier-1"
	sum := sha256.Sum256([]byte(verifier))
	match := base64.RawURLEncoding.EncodeToString(sum[:])
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, challenge string
		says            bool
		want            string
	}{
		{"it says no to the right one", match, false, "invalid_grant"},
		{"it says yes to a wrong one", "x", true, ""},
	} {
		t.Run("PK-10 "+tt.name, func(t *testing.T) {
			calls := 0
			s := &Server{verifyVerifier: func(c, v string) bool {
				if calls++; c != tt.challenge || v != verifier {
					t.Errorf("compared %q with %q", c, v)
				}
				return tt.says
			}}
			client := &registration.Client{ID: "app"}
			u := &unit{params: oauth.Params{"code": {"x"}, "code_verifier": {verifier}}, now: now, client: client, genuine: true,
				loaded: &Redemption{Client: client, SubjectEnabled: true, ResourceRegistered: true, Grant: grant.Grant{ClientID: "app",
					CodeChallenge: tt.challenge, CodeExpiresAt: now.Add(time.Minute), ExpiresAt: now.Add(time.Hour)}}}
			if got := oauth.Code(s.checkCode(t.Context(), u)); got != tt.want || calls != 1 {
				t.Errorf("error %q after %d comparisons, want %q after 1", got, calls, tt.want)
			}
		})
	}
}
