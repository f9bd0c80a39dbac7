package gateway

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"
)

// TypeIdentity is the JOSE typ of identities: no verifier of access tokens takes
// one, and nobody takes an access token for one (RFC 8725 §3.11).
const TypeIdentity = "ostiary-identity+jwt"

// Key is what a gateway signs identities with (ES256), and derives its session key
// from. Gateways before the same upstream share one.
type Key struct {
	private *ecdsa.PrivateKey
	signer  jws.Signer
	header  string // base64url protected header
	jwks    []byte
}

// NewKey makes a key that is gone when the process ends.
func NewKey() (*Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make identity key: %w", err)
	}
	return newKey(private)
}

// LoadKey reads the key in a file (PEM, PKCS #8 or SEC 1), and makes the file when
// it is not there. Who may read it is the caller's to check.
func LoadKey(path string) (*Key, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("identity key: %w", err)
	}
	private, err := parseKey(data)
	if err != nil {
		return nil, fmt.Errorf("identity key %s: %w", path, err)
	}
	return newKey(private)
}

func parseKey(data []byte) (*ecdsa.PrivateKey, error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if k, ok := parsed.(*ecdsa.PrivateKey); ok && k.Curve == elliptic.P256() {
				return k, nil
			}
			return nil, errors.New("it is not a P-256 key; make one with: openssl ecparam -name prime256v1 -genkey -noout")
		}
		if k, err := x509.ParseECPrivateKey(block.Bytes); err == nil && k.Curve == elliptic.P256() {
			return k, nil
		}
	}
	return nil, errors.New("there is no P-256 private key in PEM; remove the file to have one made")
}

// createKey makes the file once: of two processes that start together one gets
// there first and the other reads what it wrote.
func createKey(path string) (*Key, error) {
	k, err := NewKey()
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, fmt.Errorf("encode identity key: %w", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".identity-*")
	if err != nil {
		return nil, fmt.Errorf("write identity key: %w", err)
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	err = errors.Join(pem.Encode(temp, &pem.Block{Type: "PRIVATE KEY", Bytes: der}), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Link(temp.Name(), path) // fails when the file is there
	}
	if errors.Is(err, fs.ErrExist) {
		return LoadKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("write identity key: %w", err)
	}
	return k, nil
}

func newKey(private *ecdsa.PrivateKey) (*Key, error) {
	public, err := jwk.FromRaw(private.Public())
	if err != nil {
		return nil, fmt.Errorf("identity key: %w", err)
	}
	sum, err := public.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("identity key: %w", err)
	}
	kid := base64.RawURLEncoding.EncodeToString(sum) // RFC 7638
	err = errors.Join(public.Set(jwk.KeyIDKey, kid), public.Set(jwk.AlgorithmKey, jwa.ES256), public.Set(jwk.KeyUsageKey, "sig"))
	if err != nil {
		return nil, fmt.Errorf("identity key: %w", err)
	}
	jwks, err := json.Marshal(map[string]any{"keys": []any{public}})
	if err != nil {
		return nil, fmt.Errorf("identity key: %w", err)
	}
	signer, err := jws.NewSigner(jwa.ES256)
	if err != nil {
		return nil, fmt.Errorf("identity key: %w", err)
	}
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","typ":"` + TypeIdentity + `","kid":"` + kid + `"}`))
	return &Key{private: private, signer: signer, header: header, jwks: append(jwks, '\n')}, nil
}

// JWKS returns the JWK set (RFC 7517 §5) by which identities are verified.
func (k *Key) JWKS() []byte { return k.jwks }

// sign returns claims, a JSON object, as a compact JWS.
func (k *Key) sign(claims []byte) (string, error) {
	b64 := base64.RawURLEncoding
	buf := make([]byte, 0, len(k.header)+b64.EncodedLen(len(claims))+2+b64.EncodedLen(64))
	buf = append(append(buf, k.header...), '.')
	buf = b64.AppendEncode(buf, claims)
	signature, err := k.signer.Sign(buf, k.private)
	if err != nil {
		return "", fmt.Errorf("sign identity: %w", err)
	}
	return string(b64.AppendEncode(append(buf, '.'), signature)), nil
}

// sessionKey seals session ids, so that who shares the key shares the sessions.
func (k *Key) sessionKey() []byte {
	secret, err := k.private.Bytes()
	if err == nil {
		secret, err = hkdf.Key(sha256.New, secret, nil, "ostiary gateway session key v1", sha256.Size)
	}
	if err != nil {
		panic("gateway: " + err.Error()) // unreachable: a P-256 key, and a length that HKDF has
	}
	return secret
}
