package keys_test

import (
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/test/testkit"
)

// FuzzVerify: whatever is sent to /introspect and /revoke as a token, only the one
// spelling that Sign gave is verified, and nothing panics.
func FuzzVerify(f *testing.F) {
	s, _ := ensured(f, testkit.OpenSQLite(f))
	token, _, err := s.Sign("at+jwt", []byte(`{"sub":"a"}`))
	if err != nil {
		f.Fatal(err)
	}
	header, rest, _ := strings.Cut(token, ".")
	for _, seed := range []string{token, token + "=", token + "\n", header + "\n." + rest, header + ".." + rest, header + "." + rest + ".x",
		"..", "e30.e30.", "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0.e30.", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		claims, _, err := s.Verify("at+jwt", raw)
		if (err == nil) != (raw == token) {
			t.Errorf("Verify(%q) = %s, %v", raw, claims, err)
		}
	})
}
