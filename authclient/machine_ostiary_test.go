package authclient_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwk"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit/site"
)

// TestMachine_AtOstiary: jobs with a secret and with keys call a protected server, and
// go on when the first token has ended.
func TestMachine_AtOstiary(t *testing.T) {
	t.Parallel()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, method string
		key          crypto.Signer
	}{
		{"client_secret_basic", "client_secret_basic", nil},
		{"client_secret_post", "client_secret_post", nil},
		{"private_key_jwt ES256", "private_key_jwt", ec},
		{"private_key_jwt EdDSA", "private_key_jwt", ed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t)
			o := registration.AddOptions{Name: "Nightly report", AuthMethod: tt.method, GrantTypes: []string{"client_credentials"},
				Resources: []string{s.URL}, Scope: "notes:read notes:write"}
			job := authclient.RegisteredClient{Issuer: s.Server.Config.Issuer}
			if tt.key != nil {
				o.JWKS = publicSet(t, tt.key, "k1")
				job.Key = &authclient.SigningKey{ID: "k1", Signer: tt.key}
			} else {
				job.AuthMethod = tt.method
			}
			client, secret, err := s.Server.App.Clients.Add(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			job.ClientID, job.ClientSecret = client.ID, secret
			c := s.Client(func(o *authclient.Options) {
				o.Authorizer, o.Machine = nil, &authclient.ClientCredentials{Client: job}
			})
			post(t, c, s.URL, "greet")
			post(t, c, s.URL, "add_note") // asks for one scope more
			s.Server.Clock.Advance(11 * time.Minute)
			post(t, c, s.URL, "add_note")
			if n := s.Requests("POST /token"); n != 3 {
				t.Errorf("%d token requests, want one each", n)
			}
		})
	}
}

// TestSigningKey_AtOstiary: a client with a key that logs in a person.
func TestSigningKey_AtOstiary(t *testing.T) {
	t.Parallel()
	s := site.Start(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	client, _, err := s.Server.App.Clients.Add(t.Context(), registration.AddOptions{Name: "Notebook", AuthMethod: "private_key_jwt",
		RedirectURIs: []string{"http://127.0.0.1/callback"}, JWKS: publicSet(t, key, "k1")})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Client(func(o *authclient.Options) {
		o.Registered = []authclient.RegisteredClient{{Issuer: s.Server.Config.Issuer, ClientID: client.ID,
			Key: &authclient.SigningKey{ID: "k1", Algorithm: "PS256", Signer: key}}}
	})
	post(t, c, s.URL, "greet")
	s.Server.Clock.Advance(11 * time.Minute)
	post(t, c, s.URL, "greet")
	if s.Asked() != 1 || s.Requests("POST /register") != 0 {
		t.Errorf("asked %d times, %d registrations", s.Asked(), s.Requests("POST /register"))
	}
}

// publicSet is the JWK set of one public key.
func publicSet(t *testing.T, key crypto.Signer, kid string) []byte {
	t.Helper()
	k, err := jwk.FromRaw(key.Public())
	if err == nil {
		err = k.Set(jwk.KeyIDKey, kid)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{"keys": []jwk.Key{k}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// post calls a tool without an SDK and demands that it is let in.
func post(t *testing.T, c *authclient.Client, url, tool string) {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := c.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	_ = resp.Body.Close()
	// whatever the server says to a caller without a session, it is not the door
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		t.Fatalf("%s: %s", tool, resp.Status)
	}
}
