package resourceserver

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func FuzzBearerToken(f *testing.F) {
	for _, s := range []string{"", "Bearer a", "bearer  a", "Bearer a b", "Basic YTpi", "Bearer ä", "Bearer =", "Bearer a=="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		token, err := bearerToken(http.Header{"Authorization": {value}})
		if (err == nil) != (token != "") {
			t.Fatalf("bearerToken(%q) = %q, %v", value, token, err)
		}
		if err != nil {
			return
		}
		if token[0] == ' ' || len(token) > maxToken || !strings.HasSuffix(value, token) {
			t.Fatalf("bearerToken(%q) = %q", value, token)
		}
		v := verifier{digests: newDigester(), now: time.Now, verified: newCache[verified](1)}
		if _, err := v.verify(t.Context(), token); err == nil || !isToken68(token) && err != errNotOneToken {
			t.Fatalf("verify(%q) = %v", token, err)
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	for _, s := range []string{
		`{"keys":[]}`, `{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`, `{"keys":[{"kty":"oct","k":"AA"}]}`,
		`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`, `{"keys":[1]}`, `{"keys":[{"kty":"EC","kty":"RSA"}]}`, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, err := parseKeys(b)
		if err != nil && keys != nil {
			t.Fatalf("parseKeys = %v, %v", keys, err)
		}
		for _, k := range keys {
			if len(k.Algorithms) == 0 || k.Public == nil {
				t.Fatalf("a key of no use: %+v", k)
			}
		}
	})
}
