package interop

import (
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwk"

	"github.com/ostiary-auth/ostiary/internal/jose"
	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// dpopDoor lets requests in whose token is bound to the key of their proof (RFC 9449
// §7), which the middleware of this module does not do yet.
type dpopDoor struct {
	nonces bool // each nonce is good for three proofs

	s      *stranger
	keys   []*jose.Key
	mu     sync.Mutex
	seen   map[string]bool // jti
	passed int
}

func (d *dpopDoor) serve(s *stranger) http.Handler {
	d.s, d.seen = s, map[string]bool{}
	resp, err := http.Get(s.issuer.url + "/jwks")
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := jose.ReadSet(readAll(s.t, resp), 8)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, raw := range list {
		k, err := jose.ReadKey(raw, []jose.Algorithm{jose.ES256})
		if err != nil {
			s.t.Fatal(err)
		}
		d.keys = append(d.keys, k)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"resource": s.url, "authorization_servers": []string{s.issuer.url},
			"scopes_supported": []string{"notes:read"}, "dpop_bound_access_tokens_required": true})
	})
	mux.HandleFunc("POST /mcp", d.knock)
	return mux
}

// nonce changes with every third request that passed.
func (d *dpopDoor) nonce() string {
	if !d.nonces {
		return ""
	}
	return fmt.Sprintf("nonce-%d", d.passed/3)
}

func (d *dpopDoor) knock(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	token, bound := strings.CutPrefix(r.Header.Get("Authorization"), "DPoP ")
	if !bound {
		d.refuse(w, "", "")
		return
	}
	claims, err := d.readToken(token)
	if err != nil {
		d.refuse(w, "invalid_token", "")
		return
	}
	nonce, err := d.readProof(r, token, claims)
	switch {
	case err != nil:
		d.s.t.Errorf("proof: %v", err)
		d.refuse(w, "invalid_dpop_proof", "")
	case nonce != d.nonce():
		w.Header().Set("DPoP-Nonce", d.nonce())
		d.refuse(w, "use_dpop_nonce", "")
	default:
		d.passed++
		scope, _ := claims.Str("scope")
		body := readAll(d.s.t, &http.Response{Body: r.Body})
		if strings.Contains(string(body), "add_note") && !slices.Contains(strings.Fields(scope), "notes:write") {
			d.refuse(w, "insufficient_scope", "notes:write")
			return
		}
		_, _ = w.Write([]byte("welcome"))
	}
}

func (d *dpopDoor) refuse(w http.ResponseWriter, code, scope string) {
	challenge := `DPoP algs="ES256", resource_metadata="` + strings.TrimSuffix(d.s.url, "/mcp") + `/.well-known/oauth-protected-resource/mcp"`
	status := http.StatusUnauthorized
	if code != "" {
		challenge += `, error="` + code + `"`
	}
	if scope != "" {
		challenge, status = challenge+`, scope="`+scope+`"`, http.StatusForbidden
	}
	w.Header().Set("WWW-Authenticate", challenge)
	w.WriteHeader(status)
}

// readToken verifies an access token of the issuer for this server.
func (d *dpopDoor) readToken(token string) (strictjson.Object, error) {
	var j jose.JWS
	if err := j.Split(token); err != nil {
		return nil, err
	}
	kid, err := j.KeyID()
	if err != nil {
		return nil, err
	}
	k := jose.Find(d.keys, kid, jose.ES256)
	if k == nil {
		return nil, fmt.Errorf("no key %s", kid)
	}
	if err := k.Verify(jose.ES256, j.Signed, j.Signature); err != nil {
		return nil, err
	}
	if exp, ok := j.Claims.Seconds("exp"); !ok || time.Now().After(exp) || !j.Claims.Is("aud", d.s.url) || !j.Claims.Is("iss", d.s.issuer.url) {
		return nil, fmt.Errorf("claims %v", j.Claims)
	}
	return j.Claims, nil
}

// readProof applies RFC 9449 §4.3 and returns the proof's nonce.
func (d *dpopDoor) readProof(r *http.Request, token string, claims strictjson.Object) (string, error) {
	if n := len(r.Header.Values("DPoP")); n != 1 {
		return "", fmt.Errorf("%d headers", n)
	}
	var j jose.JWS
	if err := j.Split(r.Header.Get("DPoP")); err != nil {
		return "", err
	}
	raw := j.Header.Get("jwk")
	k, err := jose.ReadKey(raw, []jose.Algorithm{jose.ES256})
	if err != nil {
		return "", err
	}
	if err := k.Verify(jose.ES256, j.Signed, j.Signature); err != nil {
		return "", err
	}
	public, err := jwk.ParseKey(raw)
	if err != nil {
		return "", err
	}
	sum, err := public.Thumbprint(crypto.SHA256)
	if err != nil {
		return "", err
	}
	ath := sha256.Sum256([]byte(token))
	jti, _ := j.Claims.Str("jti")
	iat, _ := j.Claims.Seconds("iat")
	cnf, err := strictjson.ReadObject(claims.Get("cnf"), nil, strictjson.Small)
	switch {
	case err != nil || !cnf.Is("jkt", base64.RawURLEncoding.EncodeToString(sum)):
		return "", fmt.Errorf("the token is bound to another key: %s", claims.Get("cnf"))
	case !j.Header.Is("typ", "dpop+jwt") || !j.Claims.Is("htm", r.Method) || !j.Claims.Is("htu", d.s.url) ||
		!j.Claims.Is("ath", base64.RawURLEncoding.EncodeToString(ath[:])) || time.Since(iat).Abs() > time.Minute || d.seen[jti]:
		return "", fmt.Errorf("header %v, claims %v", j.Header, j.Claims)
	}
	d.seen[jti] = true
	nonce, _ := j.Claims.Str("nonce")
	return nonce, nil
}
