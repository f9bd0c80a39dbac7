package authclient

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/jose"
)

func parsed(t testing.TB, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func proofKeyFor(t testing.TB) *proofKey {
	t.Helper()
	k, err := newProofKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestThumbprint has the key of RFC 9449 §4.1 and its thumbprint of §6.1.
func TestThumbprint(t *testing.T) {
	t.Parallel()
	point := []byte{4}
	for _, coordinate := range []string{"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs", "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA"} {
		b, err := base64.RawURLEncoding.DecodeString(coordinate)
		if err != nil {
			t.Fatal(err)
		}
		point = append(point, b...)
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		t.Fatal(err)
	}
	k, err := proofKeyOf(&ecdsa.PrivateKey{PublicKey: *public})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := k.thumbprint(), "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"; got != want {
		t.Errorf("thumbprint = %s, want %s", got, want)
	}
}

// TestProof: what RFC 9449 §4.2 wants is there, and what it does not is not. The
// access token and its hash are those of §7.1.
func TestProof(t *testing.T) {
	t.Parallel()
	k, now := proofKeyFor(t), time.Unix(1_700_000_000, 0)
	const token, ath = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU", "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"
	full, err := k.proof("POST", parsed(t, "https://mcp.example/mcp?session=1"), "n-1", token, now)
	if err != nil {
		t.Fatal(err)
	}
	j := verified(t, full, k.private.Public(), jose.ES256)
	for name, want := range map[string]string{"htm": "POST", "htu": "https://mcp.example/mcp", "ath": ath, "nonce": "n-1"} {
		if !j.Claims.Is(name, want) {
			t.Errorf("%s = %s, want %s", name, j.Claims.Get(name), want)
		}
	}
	if iat, ok := j.Claims.Seconds("iat"); !ok || !iat.Equal(now) || !j.Header.Is("typ", "dpop+jwt") {
		t.Errorf("iat %v, header %v", iat, j.Header)
	}
	if _, err := jose.ReadKey(j.Header.Get("jwk"), []jose.Algorithm{jose.ES256}); err != nil { // refuses private members
		t.Errorf("jwk: %v", err)
	}
	plain, err := k.proof("GET", parsed(t, "https://mcp.example"), "", "", now)
	if err != nil {
		t.Fatal(err)
	}
	p := verified(t, plain, k.private.Public(), jose.ES256)
	if p.Claims.Has("ath") || p.Claims.Has("nonce") || !p.Claims.Is("htm", "GET") {
		t.Errorf("claims %v", p.Claims)
	}
	a, _ := j.Claims.Str("jti")
	if b, _ := p.Claims.Str("jti"); a == b || len(a) < 22 {
		t.Errorf("jti %q and %q", a, b)
	}
}

func TestProofURI(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://mcp.example/mcp":            "https://mcp.example/mcp",
		"https://MCP.example:443/mcp?a=1":    "https://mcp.example/mcp",
		"http://127.0.0.1:80":                "http://127.0.0.1/",
		"https://mcp.example:8443/a%2Fb/?q=": "https://mcp.example:8443/a%2Fb/",
		"http://mcp.example:443/":            "http://mcp.example:443/",
		"https://[::1]:443/mcp":              "https://[::1]/mcp",
	} {
		if got := proofURI(parsed(t, raw)); got != want {
			t.Errorf("proofURI(%s) = %s, want %s", raw, got, want)
		}
	}
}

func TestProofKeyIsStored(t *testing.T) {
	t.Parallel()
	k := proofKeyFor(t)
	stored, err := k.encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := parseProofKey(stored)
	if err != nil || !again.private.Equal(k.private) || again.thumbprint() != k.thumbprint() {
		t.Errorf("another key came back: %v", err)
	}
	if other := proofKeyFor(t); other.thumbprint() == k.thumbprint() {
		t.Error("two grants have one key")
	}
	for _, bad := range []string{``, `null`, `"AAAA"`, `{}`} {
		if _, err := parseProofKey([]byte(bad)); err == nil {
			t.Errorf("parseProofKey(%q) accepts it", bad)
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, k); got != "[redacted]" {
			t.Errorf("%s prints %s", verb, got)
		}
	}
}

func TestPresent(t *testing.T) {
	t.Parallel()
	k := proofKeyFor(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://mcp.example/mcp", bytes.NewReader(nil))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Add("DPoP", "an old one")
	if err := k.present(req, "the-token", "", time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := req.Header.Get("Authorization"); got != "DPoP the-token" || len(req.Header.Values("DPoP")) != 1 {
		t.Errorf("Authorization %q, proofs %q", got, req.Header.Values("DPoP"))
	}
	verified(t, req.Header.Get("DPoP"), k.private.Public(), jose.ES256)
}

func TestAsksForNonce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, challenge, nonce string
		status                 int
		want                   bool
	}{
		{"RFC 9449 §9", `DPoP error="use_dpop_nonce", error_description="nonce required"`, "n", 401, true},
		{"beside Bearer", `Bearer resource_metadata="https://a/", DPoP error="use_dpop_nonce"`, "n", 401, true},
		{"no nonce", `DPoP error="use_dpop_nonce"`, "", 401, false},
		{"another error", `DPoP error="invalid_token"`, "n", 401, false},
		{"another scheme", `Bearer error="use_dpop_nonce"`, "n", 401, false},
		{"another status", `DPoP error="use_dpop_nonce"`, "n", 400, false},
	} {
		h := http.Header{"Www-Authenticate": {tt.challenge}}
		if tt.nonce != "" {
			h.Set("DPoP-Nonce", tt.nonce)
		}
		if got := asksForNonce(&http.Response{StatusCode: tt.status, Header: h}); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
