package authclient

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256" // the hashes of the algorithms below
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// SigningKey signs a client's assertions (private_key_jwt, RFC 7523 §2.2).
type SigningKey struct {
	// ID is kid, by which the authorization server finds the public key. It may be
	// empty where the client has one key only.
	ID string
	// Algorithm is alg. Default: by the key, ES256, ES384, ES512, EdDSA or RS256. An
	// RSA key can also have RS384, RS512, PS256, PS384 or PS512.
	Algorithm string
	// Signer is the private key, in memory or in a device. Required.
	Signer crypto.Signer
}

// ParseSigningKey reads a private key in PEM: PKCS #8, or the older forms of EC and
// RSA. Its error never repeats what it was given.
func ParseSigningKey(pemBytes []byte) (*SigningKey, error) {
	block, _ := pem.Decode(pemBytes)
	if block == nil {
		return nil, errors.New("the signing key is not PEM")
	}
	signer, err := parsePrivateKey(block)
	if err != nil {
		return nil, err
	}
	k := &SigningKey{Signer: signer}
	_, err = k.algorithm()
	return k, err
}

func parsePrivateKey(block *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("a PEM block of type %s is no private key that can be read here; PKCS #8 without a passphrase can", quoted(block.Type))
	}
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, errors.New("the signing key cannot be read")
	}
	return signer, nil
}

// algorithm is a way to sign (RFC 7518 §3.1, RFC 8037 §3.1).
type algorithm struct {
	name string
	hash crypto.Hash
	pss  bool
	// size is how long each of R and S is, for ECDSA.
	size int
}

var (
	es256 = algorithm{name: "ES256", hash: crypto.SHA256, size: 32}
	es384 = algorithm{name: "ES384", hash: crypto.SHA384, size: 48}
	es512 = algorithm{name: "ES512", hash: crypto.SHA512, size: 66}
	edDSA = algorithm{name: "EdDSA"}
)

// algorithmsOf returns what a public key can be used with, the default first.
func algorithmsOf(public crypto.PublicKey) []algorithm {
	switch p := public.(type) {
	case *ecdsa.PublicKey:
		switch p.Curve {
		case elliptic.P256():
			return []algorithm{es256}
		case elliptic.P384():
			return []algorithm{es384}
		case elliptic.P521():
			return []algorithm{es512}
		}
	case ed25519.PublicKey:
		return []algorithm{edDSA}
	case *rsa.PublicKey:
		if p.N.BitLen() < 2048 { // RFC 7518 §3.3
			return nil
		}
		return []algorithm{
			{name: "RS256", hash: crypto.SHA256}, {name: "RS384", hash: crypto.SHA384}, {name: "RS512", hash: crypto.SHA512},
			{name: "PS256", hash: crypto.SHA256, pss: true}, {name: "PS384", hash: crypto.SHA384, pss: true}, {name: "PS512", hash: crypto.SHA512, pss: true},
		}
	}
	return nil
}

// algorithm is the one that is configured, or the key's first.
func (k *SigningKey) algorithm() (algorithm, error) { return k.algorithmFor(nil) }

// algorithmFor returns the first algorithm of the key that the server lists; a server
// that lists none says nothing.
func (k *SigningKey) algorithmFor(supported []string) (algorithm, error) {
	if k == nil || k.Signer == nil {
		return algorithm{}, errors.New("the signing key has no Signer")
	}
	list := algorithmsOf(k.Signer.Public())
	if len(list) == 0 {
		return algorithm{}, errors.New("the signing key is of no kind that is used here: EC (P-256, P-384, P-521), Ed25519, or RSA of 2048 bits or more")
	}
	for _, a := range list {
		if (k.Algorithm == "" || k.Algorithm == a.name) && (len(supported) == 0 || slices.Contains(supported, a.name)) {
			return a, nil
		}
	}
	if len(supported) > 0 {
		return algorithm{}, fmt.Errorf("the signing key cannot make what the server takes: %s", quoted(strings.Join(supported, " ")))
	}
	return algorithm{}, fmt.Errorf("the signing key cannot be used with the algorithm %s", quoted(k.Algorithm))
}

// signJWT returns claims as a JWT in compact form (RFC 7515 §7.1). The header gets its alg.
func signJWT(signer crypto.Signer, a algorithm, header, claims map[string]any) (string, error) {
	header["alg"] = a.name
	h, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	c, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := encodeSegment(h) + "." + encodeSegment(c)
	sig, err := a.sign(signer, []byte(signed))
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return signed + "." + encodeSegment(sig), nil
}

func (a algorithm) sign(signer crypto.Signer, message []byte) ([]byte, error) {
	if a.hash == 0 { // Ed25519 hashes by itself
		return signer.Sign(rand.Reader, message, crypto.Hash(0))
	}
	h := a.hash.New()
	h.Write(message)
	var opts crypto.SignerOpts = a.hash
	if a.pss { // RFC 7518 §3.5: the salt is as long as the hash
		opts = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: a.hash}
	}
	sig, err := signer.Sign(rand.Reader, h.Sum(nil), opts)
	if err != nil || a.size == 0 {
		return sig, err
	}
	return a.sideBySide(sig)
}

// sideBySide turns an ASN.1 signature into R and S of fixed length (RFC 7518 §3.4).
func (a algorithm) sideBySide(der []byte) ([]byte, error) {
	r, s, err := readECDSASignature(der)
	if err != nil || r.BitLen() > a.size*8 || s.BitLen() > a.size*8 {
		return nil, errors.New("the key made a signature of the wrong form")
	}
	out := make([]byte, 2*a.size)
	r.FillBytes(out[:a.size])
	s.FillBytes(out[a.size:])
	return out, nil
}

func encodeSegment(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// maxAssertion bounds a JWT that somebody else made, in bytes.
const maxAssertion = 32 << 10

// readJWT returns header and claims of a signed JWT. Nothing is verified: who gets it
// does that. It is read to see whom it may be sent to.
func readJWT(raw string) (header, claims strictjson.Object, err error) {
	if len(raw) > maxAssertion {
		return nil, nil, fmt.Errorf("is longer than %d bytes", maxAssertion)
	}
	parts := strings.Split(raw, ".")
	if len(parts) != 3 || parts[2] == "" || !isVisible(raw) {
		return nil, nil, errors.New("is not a signed JWT")
	}
	if header, err = readSegment(parts[0]); err == nil {
		claims, err = readSegment(parts[1])
	}
	return header, claims, err
}

func readSegment(s string) (strictjson.Object, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, errors.New("is not a signed JWT")
	}
	o, err := strictjson.ReadObject(b, nil, strictjson.Small)
	if err != nil {
		return nil, errors.New("has a part that is not a JSON object with unique members")
	}
	return o, nil
}

// audiences returns aud, a string or a list of them (RFC 7519 §4.1.3).
func audiences(claims strictjson.Object) []string {
	if one, ok := claims.Str("aud"); ok {
		return []string{one}
	}
	return claims.Strs("aud")
}

func readECDSASignature(der []byte) (r, s *big.Int, err error) {
	var sig struct{ R, S *big.Int }
	rest, err := asn1.Unmarshal(der, &sig)
	if err != nil || len(rest) > 0 || sig.R.Sign() <= 0 || sig.S.Sign() <= 0 {
		return nil, nil, errors.New("not an ECDSA signature")
	}
	return sig.R, sig.S, nil
}
