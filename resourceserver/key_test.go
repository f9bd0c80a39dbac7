package resourceserver

import (
	"strings"
	"testing"
)

// A key set is foreign bytes: a key that cannot verify anything is left out, and
// the others stay.
func TestParseKeysLeavesOutWhatCannotVerify(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{
		"Ed25519 of 31 bytes": `{"kty":"OKP","crv":"Ed25519","x":"` + strings.Repeat("A", 41) + `A"}`,
		"Ed25519 of 33 bytes": `{"kty":"OKP","crv":"Ed25519","x":"` + strings.Repeat("A", 44) + `"}`,
		"Ed25519 empty":       `{"kty":"OKP","crv":"Ed25519","x":""}`,
		"X25519":              `{"kty":"OKP","crv":"X25519","x":"` + strings.Repeat("A", 43) + `"}`,
	} {
		good := `{"kty":"OKP","crv":"Ed25519","kid":"good","x":"` + strings.Repeat("A", 43) + `"}`
		keys, err := parseKeys([]byte(`{"keys":[` + key + `,` + good + `]}`))
		if err != nil || len(keys) != 1 || keys[0].ID != "good" {
			t.Errorf("%s: %+v, %v; want the good key only", name, keys, err)
		}
	}
}
