package authclient

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// proofKey makes the DPoP proofs of one grant (RFC 9449 §4.2) with an ES256 key. It
// implements prover.
type proofKey struct {
	private *ecdsa.PrivateKey
	jwk     map[string]any // the public key
	jkt     string         // its thumbprint
}

// newProofKey makes a key. Each grant has its own, so two of them cannot be joined by it.
func newProofKey() (*proofKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a DPoP key: %w", err)
	}
	return proofKeyOf(private)
}

// parseProofKey reads what encode wrote.
func parseProofKey(stored json.RawMessage) (*proofKey, error) {
	var pkcs8 []byte
	err := json.Unmarshal(stored, &pkcs8)
	if err != nil {
		return nil, errors.New("the stored DPoP key cannot be read")
	}
	key, err := x509.ParsePKCS8PrivateKey(pkcs8)
	private, ok := key.(*ecdsa.PrivateKey)
	if err != nil || !ok || private.Curve != elliptic.P256() {
		return nil, errors.New("the stored DPoP key cannot be read")
	}
	return proofKeyOf(private)
}

func proofKeyOf(private *ecdsa.PrivateKey) (*proofKey, error) {
	point, err := private.PublicKey.Bytes() // 4, X, Y (SEC 1 §2.3.3)
	if err != nil || len(point) != 65 {
		return nil, errors.New("the DPoP key is not one of P-256")
	}
	x, y := encodeSegment(point[1:33]), encodeSegment(point[33:])
	// RFC 7638 §3: these members, in this order, without white space
	digest := sha256.Sum256([]byte(`{"crv":"P-256","kty":"EC","x":"` + x + `","y":"` + y + `"}`))
	return &proofKey{private: private, jkt: encodeSegment(digest[:]),
		jwk: map[string]any{"kty": "EC", "crv": "P-256", "x": x, "y": y}}, nil
}

// encode returns the private key for the store: PKCS #8 in a JSON string.
func (k *proofKey) encode() (json.RawMessage, error) {
	pkcs8, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, fmt.Errorf("write the DPoP key: %w", err)
	}
	return json.Marshal(pkcs8)
}

// Format keeps the key out of whatever prints it.
func (k *proofKey) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[redacted]")) }

// thumbprint implements prover.
func (k *proofKey) thumbprint() string { return k.jkt }

// proof implements prover.
func (k *proofKey) proof(method string, target *url.URL, nonce, accessToken string, now time.Time) (string, error) {
	claims := map[string]any{"jti": randomID(), "htm": method, "htu": proofURI(target), "iat": now.Unix()}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if accessToken != "" {
		digest := sha256.Sum256([]byte(accessToken))
		claims["ath"] = encodeSegment(digest[:])
	}
	return signJWT(k.private, es256, map[string]any{"typ": "dpop+jwt", "jwk": k.jwk}, claims)
}

// proofURI is htu: the URI without query and fragment (RFC 9449 §4.2), in the
// normalized spelling of RFC 3986 §6.2.2 and §6.2.3 that servers compare with.
func proofURI(u *url.URL) string {
	host := strings.ToLower(u.Host)
	for scheme, port := range map[string]string{"https": ":443", "http": ":80"} {
		if u.Scheme == scheme {
			host = strings.TrimSuffix(host, port)
		}
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return u.Scheme + "://" + host + path
}

// randomID is 128 random bits: a jti that no other proof or assertion has.
func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return encodeSegment(b[:])
}

// canDPoP reports whether the server takes proofs made here (RFC 9449 §5.1).
func canDPoP(as *authorizationServer) bool { return slices.Contains(as.DPoPSigningAlgs, es256.name) }

// present adds an access token to a request for the MCP server, with a fresh proof
// when the token is bound to the key (RFC 9449 §7.1).
func (k *proofKey) present(req *http.Request, token Secret, nonce string, now time.Time) error {
	proof, err := k.proof(req.Method, req.URL, nonce, token.Reveal(), now)
	if err != nil {
		return fmt.Errorf("prove possession of the key: %w", err)
	}
	req.Header.Set("Authorization", typeDPoP+" "+token.Reveal())
	req.Header["Dpop"] = []string{proof} // exactly one, whatever the caller set
	return nil
}

// asksForNonce reports that the MCP server refused a request only for the nonce of its
// proof (RFC 9449 §9).
func asksForNonce(resp *http.Response) bool {
	if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("DPoP-Nonce") == "" {
		return false
	}
	return slices.ContainsFunc(parseChallenges(resp.Header.Values("WWW-Authenticate")), func(c authChallenge) bool {
		return c.scheme == "dpop" && c.params["error"] == "use_dpop_nonce"
	})
}
