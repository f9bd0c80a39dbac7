package registration

import (
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

const (
	goodEC      = `{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"`
	goodEd      = `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"`
	goodRSA     = `{"kty":"RSA","e":"AQAB","n":"` + modulus2048
	modulus2048 = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
)

func TestParseJWKS(t *testing.T) {
	t.Parallel()
	ec, ed, rsa := goodEC+`}`, goodEd+`}`, goodRSA+`"}`
	set := func(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }
	for _, tt := range []struct {
		name, doc string
		keys      int
		says      string // of the error
	}{
		{"one of each", set(ec, ed, rsa), 3, ""},
		{"RFC 7517 5 unknown members, types, curves and uses are left out",
			set(`{"kty":"XX"}`, `{"kty":"EC","crv":"P-384"}`, `{"kty":"OKP","crv":"X25519","x":"AA"}`, goodEC+`,"use":"enc"}`, goodEC+`,"key_ops":["deriveKey"]}`, goodEd+`,"use":"sig","key_ops":["verify"],"x5u":"https://a.example"}`), 1, ""},
		{"alg narrows", set(goodRSA + `","alg":"PS256"}`), 1, ""},
		{"alg that we have not", set(goodRSA + `","alg":"RS512"}`), 0, "no key that can sign"},
		{"private EC key", set(ed, goodEC+`,"d":"AA"}`), 0, "keys[1] is a private"},
		{"private Ed25519 key", set(goodEd + `,"d":"AA"}`), 0, "private"},
		{"private RSA key", set(goodRSA + `","d":"AA"}`), 0, "private"},
		{"a prime of an RSA key", set(goodRSA + `","p":"AA"}`), 0, "private"},
		{"private key for another use", set(ec, goodEd+`,"use":"enc","d":"AA"}`), 0, "private"},
		{"shared key", set(`{"kty":"oct","k":"AAAA"}`), 0, "shared"},
		{"shared key without its value", set(ec, `{"kty":"oct"}`), 0, "shared"},
		{"a kid twice", set(goodEC+`,"kid":"a"}`, goodEd+`,"kid":"a"}`), 0, "keys[1] has the kid"},
		{"no kid twice", set(ec, ed), 2, ""},
		{"a member twice", set(goodEC + `,"kty":"RSA"}`), 0, "unique members"},
		{"kid is a number", set(goodEC + `,"kid":1}`), 0, "wrong type"},
		{"not a point of the curve", set(strings.Replace(ec, "f83O", "f83P", 1)), 0, "not a valid public key"},
		{"Ed25519 key of the wrong length", set(`{"kty":"OKP","crv":"Ed25519","x":"AAAA"}`), 0, "not a valid public key"},
		{"EC key without y", set(`{"kty":"EC","crv":"P-256","x":"AAAA"}`), 0, "not a valid public key"},
		{"RSA of 1024 bits", set(strings.Replace(rsa, modulus2048, modulus2048[:171], 1)), 0, "2048"},
		{"RSA of 16384 bits", set(strings.Replace(rsa, modulus2048, strings.Repeat(modulus2048, 8), 1)), 0, "8192"},
		{"RSA exponent 1", set(strings.Replace(rsa, "AQAB", "AQ", 1)), 0, "not a valid public key"},
		{"RSA exponent even", set(strings.Replace(rsa, "AQAB", "Ag", 1)), 0, "not a valid public key"},
		{"key is a string", set(`"a"`), 0, "JSON object"},
		{"no keys", `{"keys":[]}`, 0, "1 to 20"},
		{"keys missing", `{}`, 0, "1 to 20"},
		{"keys is an object", `{"keys":{}}`, 0, "1 to 20"},
		{"too many keys", set(strings.Split(strings.TrimSuffix(strings.Repeat(ec+"|", 21), "|"), "|")...), 0, "1 to 20"},
		{"too large", `{"keys":[],"x":"` + strings.Repeat("x", 32<<10) + `"}`, 0, "larger"},
		{"a list", `[` + ec + `]`, 0, "JSON object"},
		{"a single key", ec, 0, "1 to 20"},
		{"no JSON", `<html>`, 0, "JSON object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			keys, err := parseJWKS([]byte(tt.doc))
			if tt.says == "" {
				if err != nil || len(keys) != tt.keys {
					t.Errorf("%d keys, %v; want %d", len(keys), err, tt.keys)
				}
				return
			}
			if oauth.Code(err) != "invalid_client_metadata" || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("err = %v, want invalid_client_metadata that says %q", err, tt.says)
			}
		})
	}
}

func TestParseClientMetadataKeys(t *testing.T) {
	t.Parallel()
	const method = someRedirects + `,"token_endpoint_auth_method":"private_key_jwt"`
	jwks := `"jwks":{"keys":[ ` + goodEC + `}]}`
	for _, tt := range []struct{ name, doc, says string }{
		{"jwks", `{` + method + `,` + jwks + `}`, ""},
		{"jwks_uri", `{` + method + `,"jwks_uri":"https://app.example/jwks.json"}`, ""},
		{"null is absent", `{` + method + `,` + jwks + `,"jwks_uri":null}`, ""},
		{"registered alg", `{` + method + `,` + jwks + `,"token_endpoint_auth_signing_alg":"ES256"}`, ""},
		{"RFC 7591 2 both", `{` + method + `,` + jwks + `,"jwks_uri":"https://app.example/jwks.json"}`, "one of jwks and jwks_uri"},
		{"neither", `{` + method + `}`, "one of jwks and jwks_uri"},
		{"jwks is a string", `{` + method + `,"jwks":"{}"}`, "jwks must be a JSON object"},
		{"private key", `{` + method + `,"jwks":{"keys":[` + goodEC + `,"d":"AA"}]}}`, "private"},
		{"CA-11 http", `{` + method + `,"jwks_uri":"http://app.example/jwks.json"}`, "https"},
		{"CA-11 userinfo", `{` + method + `,"jwks_uri":"https://a:b@app.example/jwks.json"}`, "https"},
		{"CA-11 fragment", `{` + method + `,"jwks_uri":"https://app.example/jwks.json#a"}`, "fragment"},
		{"CA-11 file", `{` + method + `,"jwks_uri":"file:///etc/passwd"}`, "https"},
		{"alg none", `{` + method + `,` + jwks + `,"token_endpoint_auth_signing_alg":"none"}`, "token_endpoint_auth_signing_alg"},
		{"alg HS256", `{` + method + `,` + jwks + `,"token_endpoint_auth_signing_alg":"HS256"}`, "token_endpoint_auth_signing_alg"},
		{"alg that no key has", `{` + method + `,` + jwks + `,"token_endpoint_auth_signing_alg":"EdDSA"}`, "no key that can sign with EdDSA"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := ParseClientMetadata([]byte(tt.doc))
			if tt.says == "" {
				if err != nil || m.TokenEndpointAuthMethod != AuthPrivateKeyJWT || (len(m.JWKS) > 0) == (m.JWKSURI != "") {
					t.Errorf("%+v, %v", m, err)
				}
				if strings.Contains(string(m.JWKS), " ") {
					t.Errorf("stored as it came: %s", m.JWKS)
				}
				return
			}
			if oauth.Code(err) != "invalid_client_metadata" || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("err = %v, want invalid_client_metadata that says %q", err, tt.says)
			}
		})
	}
	// a client that authenticates otherwise may list keys; they mean nothing here
	m, err := ParseClientMetadata([]byte(`{` + someRedirects + `,"token_endpoint_auth_method":"none","jwks_uri":"https://app.example/k","jwks":{"keys":[]},"token_endpoint_auth_signing_alg":"x"}`))
	if err != nil || m.JWKSURI != "" || m.JWKS != nil || m.TokenEndpointAuthSigningAlg != "" {
		t.Errorf("none: %+v, %v", m, err)
	}
}

func FuzzParseJWKS(f *testing.F) {
	for _, doc := range []string{`{"keys":[` + goodEC + `}]}`, `{"keys":[` + goodEd + `}]}`, `{"keys":[` + goodRSA + `"}]}`, `{"keys":[{"kty":"oct","k":"AA"}]}`,
		`{"keys":[{"kty":"EC","crv":"P-256","x":"","y":""}]}`, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":""}]}`, `{"keys":[null]}`, `{}`, ``} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		keys, err := parseJWKS(doc)
		if err != nil {
			if oauth.Code(err) != "invalid_client_metadata" {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		if len(keys) == 0 || len(keys) > maxClientKeys {
			t.Fatalf("%d keys", len(keys))
		}
		for _, k := range keys {
			for _, alg := range k.Algorithms {
				if k.Verify(alg, "signed", make([]byte, 64)) == nil {
					t.Fatalf("%s accepts a signature of zeros", alg)
				}
			}
		}
	})
}
