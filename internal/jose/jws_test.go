package jose

import (
	"errors"
	"testing"
)

// FuzzSplit takes foreign tokens apart: what comes out is what went in.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{`{"typ":"at+jwt","alg":"ES256","kid":"a"}`, `{"iss":"https://a.example"}`, `{"a":1,"a":2}`, `{"a":"\ud800"}`} {
		f.Add(base64URL.EncodeToString([]byte(s)) + ".e30.AA")
		f.Add("eyJhbGciOiJFUzI1NiJ9." + base64URL.EncodeToString([]byte(s)) + ".AA")
	}
	for _, s := range []string{"", ".", "..", "a.b", "a.b.c.d.e", "e30.e30.AA", "eyJhbGciOjF9.e30.AB", "eyJhbGciOjF9.e30.A\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var j JWS
		if err := j.Split(raw); err != nil {
			if !errors.Is(err, ErrNotJWS) && !errors.Is(err, ErrSegment) && !errors.Is(err, ErrClaims) {
				t.Fatalf("Split(%q) = %v", raw, err)
			}
			return
		}
		if !j.Header.Has("alg") || j.Signed+"."+base64URL.EncodeToString(j.Signature) != raw {
			t.Fatalf("Split(%q) = signed %q, signature %q", raw, j.Signed, j.Signature)
		}
		if _, err := j.KeyID(); err == nil && (j.Header.Has("crit") || j.Header.Has("zip")) {
			t.Fatalf("%q has an extension", raw)
		}
		if alg, ok := j.Algorithm([]Algorithm{ES256, RS256}); ok && !j.Header.Is("alg", string(alg)) {
			t.Fatalf("%q: alg %s", raw, alg)
		}
	})
}
