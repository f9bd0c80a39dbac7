package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"math/big"
	"slices"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
)

// Algorithm is a JWS algorithm that keys of this server sign with (RFC 7518
// §3.1, RFC 8037 §3.1).
type Algorithm string

// Algorithms of signing keys (D7). ES256 is small, fast and understood by
// everybody; RS256 is for verifiers that know nothing else.
const (
	ES256 Algorithm = "ES256"
	EdDSA Algorithm = "EdDSA"
	RS256 Algorithm = "RS256"
)

// rsaBits is what every verifier takes (RFC 7518 §3.3); more would make signing
// slower than everything else at the token endpoint.
const rsaBits = 2048

// Algorithms returns every Algorithm, the default first.
func Algorithms() []Algorithm { return []Algorithm{ES256, EdDSA, RS256} }

// Known reports whether a is one of Algorithms.
func (a Algorithm) Known() bool { return slices.Contains(Algorithms(), a) }

func (a Algorithm) jwa() jwa.SignatureAlgorithm { return jwa.SignatureAlgorithm(a) }

func (a Algorithm) generate() (crypto.Signer, error) {
	switch a {
	case ES256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case EdDSA:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	case RS256:
		return rsa.GenerateKey(rand.Reader, rsaBits)
	}
	return nil, fmt.Errorf("algorithm %q is not known", a)
}

// fits reports whether the key is one of this algorithm, and of no other: the key
// decides, never a token (RFC 8725 §3.1).
func (a Algorithm) fits(public crypto.PublicKey) bool {
	switch p := public.(type) {
	case *ecdsa.PublicKey:
		return a == ES256 && p.Curve == elliptic.P256()
	case ed25519.PublicKey:
		return a == EdDSA
	case *rsa.PublicKey:
		return a == RS256 && p.N.BitLen() >= rsaBits
	}
	return false
}

// publicJWK is what is published of a key: named fields, so that no private
// member can slip in (MM-03).
type publicJWK struct {
	KeyType   string `json:"kty"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	KID       string `json:"kid"`
	Curve     string `json:"crv,omitempty"` // EC, OKP
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"` // EC
	N         string `json:"n,omitempty"` // RSA
	E         string `json:"e,omitempty"`
}

func newPublicJWK(alg Algorithm, public crypto.PublicKey) (publicJWK, error) {
	key, err := jwk.FromRaw(public)
	if err != nil {
		return publicJWK{}, fmt.Errorf("public key: %w", err)
	}
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return publicJWK{}, fmt.Errorf("thumbprint of public key: %w", err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	out := publicJWK{Use: "sig", Algorithm: string(alg), KID: b64(sum)}
	switch p := public.(type) {
	case *ecdsa.PublicKey:
		point, err := p.Bytes()
		if err != nil {
			return publicJWK{}, fmt.Errorf("public key: %w", err)
		}
		// an uncompressed point is 4, X, Y with 32 bytes each (SEC 1 §2.3.3)
		out.KeyType, out.Curve, out.X, out.Y = "EC", "P-256", b64(point[1:33]), b64(point[33:])
	case ed25519.PublicKey:
		out.KeyType, out.Curve, out.X = "OKP", "Ed25519", b64(p)
	case *rsa.PublicKey:
		out.KeyType, out.N, out.E = "RSA", b64(p.N.Bytes()), b64(big.NewInt(int64(p.E)).Bytes())
	default:
		return publicJWK{}, fmt.Errorf("public key: unexpected %T", public)
	}
	return out, nil
}
