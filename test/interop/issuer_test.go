package interop

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

// The resources of the other issuer: tokens for two are JWTs, for two opaque
// (oidc-provider.mjs).
const (
	files       = "https://mcp.example.com/files"
	mail        = "https://mcp.example.com/mail"
	opaqueFiles = "https://mcp.example.com/opaque/files"
	opaqueMail  = "https://mcp.example.com/opaque/mail"
)

// otherIssuer is a running node-oidc-provider.
type otherIssuer struct {
	*launch.Process
	url string
}

func serveOIDCProvider(t *testing.T, env ...string) *otherIssuer {
	t.Helper()
	launch.InstallNode(t)
	port := strconv.Itoa(launch.FreePort(t))
	o := &otherIssuer{url: "http://localhost:" + port}
	o.Process = launch.Start(t, append(env, "PORT="+port), launch.Node, "oidc-provider.mjs")
	o.Await(t, o.url+"/.well-known/openid-configuration")
	return o
}

// issued is a token response.
type issued struct {
	AccessToken string `json:"access_token"`
	IDToken     string `json:"id_token"`
}

// token has the person let the app in and redeems the code.
func (o *otherIssuer) token(t *testing.T, resource string) issued {
	t.Helper()
	const verifier, callback = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "http://127.0.0.1:33418/callback"
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Hostname() == "127.0.0.1" {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	resp, err := client.Get(o.url + "/auth?" + url.Values{"response_type": {"code"}, "client_id": {"app"}, "redirect_uri": {callback},
		"scope": {"openid notes:read"}, "resource": {resource}, "code_challenge_method": {"S256"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	back, err := resp.Location()
	if err != nil || back.Query().Get("code") == "" {
		t.Fatalf("authorization ended with %s at %s: %s", resp.Status, resp.Request.URL, readAll(t, resp))
	}
	var got issued
	body := o.post(t, "/token", url.Values{"grant_type": {"authorization_code"}, "client_id": {"app"}, "code": {back.Query().Get("code")},
		"redirect_uri": {callback}, "code_verifier": {verifier}, "resource": {resource}})
	if err := json.Unmarshal(body, &got); err != nil || got.AccessToken == "" {
		t.Fatalf("token response: %s", body)
	}
	return got
}

func (o *otherIssuer) post(t *testing.T, path string, form url.Values) []byte {
	t.Helper()
	resp, err := http.PostForm(o.url+path, form)
	if err != nil {
		t.Fatal(err)
	}
	body := readAll(t, resp)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s", path, resp.Status, body)
	}
	return body
}

func readAll(t *testing.T, resp *http.Response) []byte {
	t.Helper()
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// door is a resource server for one resource that trusts this issuer, over a
// handler that tells whose token it was.
func door(t *testing.T, resource string, issuer resourceserver.Issuer) http.Handler {
	t.Helper()
	rs, err := resourceserver.New(resourceserver.Options{Resource: resource, Issuers: []resourceserver.Issuer{issuer},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return rs.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := resourceserver.TokenFromContext(r.Context())
		_, _ = fmt.Fprintf(w, "%s by %s: %s", token.Subject, token.ClientID, strings.Join(token.Scopes, " "))
	}))
}

// welcome is what the handler says of a token that the person's app got.
const welcome = "ada by app: notes:read"

// knock sends a request with the token and compares the answer: a body of 200, or
// the error of the challenge that refuses it.
func knock(t *testing.T, door http.Handler, resource, token, want string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, resource, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	door.ServeHTTP(w, r)
	got := w.Body.String()
	if w.Code == http.StatusUnauthorized && strings.Contains(w.Header().Get("WWW-Authenticate"), `error="invalid_token"`) {
		got = "invalid_token"
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%d (-want +got):\n%s", w.Code, d)
	}
}

// TestOtherIssuer verifies the tokens of node-oidc-provider: JWTs by discovery and
// by a file of its keys, opaque ones by asking it.
func TestOtherIssuer(t *testing.T) {
	t.Parallel()
	o := serveOIDCProvider(t)
	forFiles, forMail := o.token(t, files), o.token(t, mail)
	asking := resourceserver.Issuer{Identifier: o.url, Introspection: &resourceserver.Introspection{ClientID: "resource",
		ClientSecret: "a secret of the resource server", MaxAge: -1}}
	t.Run("JWT by discovery", func(t *testing.T) {
		d := door(t, files, resourceserver.Issuer{Identifier: o.url})
		knock(t, d, files, forFiles.AccessToken, welcome)
		t.Run("JW-15 of another audience", func(t *testing.T) { knock(t, d, files, forMail.AccessToken, "invalid_token") })
		t.Run("JW-13 ID token", func(t *testing.T) { knock(t, d, files, forFiles.IDToken, "invalid_token") })
		knock(t, door(t, mail, resourceserver.Issuer{Identifier: o.url}), mail, forMail.AccessToken, welcome)
	})
	t.Run("opaque by introspection", func(t *testing.T) {
		d, ours, others := door(t, opaqueFiles, asking), o.token(t, opaqueFiles), o.token(t, opaqueMail)
		knock(t, d, opaqueFiles, ours.AccessToken, welcome)
		knock(t, door(t, opaqueMail, asking), opaqueMail, others.AccessToken, welcome)
		t.Run("JW-15 of another audience", func(t *testing.T) { knock(t, d, opaqueFiles, others.AccessToken, "invalid_token") })
		o.post(t, "/token/revocation", url.Values{"token": {ours.AccessToken}, "client_id": {"app"}})
		t.Run("JW-23 revoked", func(t *testing.T) { knock(t, d, opaqueFiles, ours.AccessToken, "invalid_token") })
	})
	file := filepath.Join(t.TempDir(), "jwks.json")
	resp, err := http.Get(o.url + "/jwks")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, readAll(t, resp), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Stop() // nothing is asked from here on
	t.Run("JWT by a file of keys", func(t *testing.T) {
		jwks, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := door(t, files, resourceserver.Issuer{Identifier: o.url, JWKS: jwks})
		knock(t, d, files, forFiles.AccessToken, welcome)
		t.Run("JW-15 of another audience", func(t *testing.T) { knock(t, d, files, forMail.AccessToken, "invalid_token") })
	})
}
