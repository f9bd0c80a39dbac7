package jose

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/lestrrat-go/jwx/v2/jwk"
)

const (
	// the keys of RFC 7515 appendix A.3 and RFC 8037 appendix A.2
	goodEC = `{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"`
	goodEd = `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"`
)

func TestReadKey(t *testing.T) {
	t.Parallel()
	all := []Algorithm{ES256, ES384, EdDSA, RS256, PS256}
	for _, tt := range []struct {
		name, jwk string
		want      []Algorithm
		err       error
	}{
		{"EC", goodEC + `}`, []Algorithm{ES256}, nil},
		{"Ed25519", goodEd + `}`, []Algorithm{EdDSA}, nil},
		{"alg narrows to nothing", goodEC + `,"alg":"ES384"}`, nil, nil},
		{"JW-07 alg of another type", goodEC + `,"alg":"RS256"}`, nil, nil},
		{"JW-07 HMAC", goodEC + `,"alg":"HS256"}`, nil, nil},
		{"JW-07 for encryption", goodEC + `,"use":"enc"}`, nil, nil},
		{"JW-07 not to verify", goodEC + `,"key_ops":["sign"]}`, nil, nil},
		{"null is absent", goodEC + `,"use":null,"alg":null,"kid":null}`, []Algorithm{ES256}, nil},
		{"type that nobody has", `{"kty":"XX"}`, nil, nil},
		{"KTY beside kty means nothing", goodEC + `,"KTY":"oct"}`, []Algorithm{ES256}, nil},
		{"a member twice", goodEC + `,"kty":"EC"}`, nil, ErrKey},
		{"no object", `[]`, nil, ErrKey},
		{"private", goodEC + `,"d":"AA"}`, nil, ErrPrivate},
		{"shared", `{"kty":"oct"}`, nil, ErrPrivate},
		{"use a number", goodEC + `,"use":1}`, nil, ErrMember},
		{"key_ops a string", goodEC + `,"key_ops":"verify"}`, nil, ErrMember},
		{"no y", `{"kty":"EC","crv":"P-256","x":"AAAA"}`, nil, ErrPublic},
		{"Ed25519 too short", `{"kty":"OKP","crv":"Ed25519","x":"AAAA"}`, nil, ErrPublic},
		{"RSA too small", `{"kty":"RSA","n":"AQAB","e":"AQAB"}`, nil, ErrSize},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k, err := ReadKey([]byte(tt.jwk), all)
			if !errors.Is(err, tt.err) {
				t.Fatalf("ReadKey = %v, want %v", err, tt.err)
			}
			if err == nil && (!slices.Equal(k.Algorithms, tt.want) || (k.Public != nil) != (tt.want != nil)) {
				t.Errorf("algorithms %v, want %v; public %v", k.Algorithms, tt.want, k.Public)
			}
		})
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	read := func(raw string) *Key {
		k, err := ReadKey([]byte(raw), []Algorithm{ES256, EdDSA})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	ec, twin, ed := read(goodEC+`,"kid":"a"}`), read(goodEC+`,"kid":"a"}`), read(goodEd+`,"kid":"a"}`)
	other := read(otherEd25519(t, "a"))
	for _, tt := range []struct {
		name string
		keys []*Key
		kid  string
		alg  Algorithm
		want *Key
	}{
		{"by kid and alg", []*Key{ed, ec}, "a", ES256, ec},
		{"JW-07 one kid, two types", []*Key{ed, ec}, "a", EdDSA, ed},
		{"without kid", []*Key{ed, ec}, "", EdDSA, ed},
		{"the same key twice", []*Key{ec, twin}, "a", ES256, twin},
		{"JW-07 two keys under one kid", []*Key{ed, other}, "a", EdDSA, nil},
		{"JW-07 two keys without kid", []*Key{ed, other}, "", EdDSA, nil},
		{"another kid", []*Key{ec}, "b", ES256, nil},
		{"JW-07 another alg", []*Key{ec}, "a", RS256, nil},
		{"none", nil, "", ES256, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Find(tt.keys, tt.kid, tt.alg); got != tt.want {
				t.Errorf("Find = %v, want %v", got, tt.want)
			}
		})
	}
}

// otherEd25519 returns the JWK of a key that nobody else has.
func otherEd25519(t *testing.T, kid string) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := jwk.FromRaw(public)
	if err == nil {
		err = k.Set(jwk.KeyIDKey, kid)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
