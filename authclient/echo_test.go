package authclient

import (
	"crypto/elliptic"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestEchoesAreRedacted: a server that repeats what it was sent does not get it into an
// error, by whatever way the client proved itself.
func TestEchoesAreRedacted(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 400, 401} {
		for _, tt := range []struct {
			name   string
			make   func(issuer string) Machine
			secret func(r received) []string
		}{
			{"client_secret_basic", func(issuer string) Machine {
				return &ClientCredentials{RegisteredClient{Issuer: issuer, ClientID: "job", ClientSecret: "s3cret/with+signs"}}
			}, func(r received) []string { return []string{"s3cret/with+signs", r.header.Get("Authorization")[6:]} }},
			{"client_secret_post", func(issuer string) Machine {
				return &ClientCredentials{RegisteredClient{Issuer: issuer, ClientID: "job", ClientSecret: "s3cret-in-the-form", AuthMethod: authPost}}
			}, func(r received) []string { return []string{r.form.Get("client_secret")} }},
			{"private_key_jwt", func(issuer string) Machine {
				return &ClientCredentials{RegisteredClient{Issuer: issuer, ClientID: "job", Key: &SigningKey{Signer: ecKey(t, elliptic.P256())}}}
			}, func(r received) []string { return []string{r.form.Get("client_assertion")} }},
			{"workload", func(issuer string) Machine {
				return &Workload{Issuer: issuer, Token: fixed(testJWT(t, map[string]any{}, map[string]any{"aud": issuer}))}
			}, func(r received) []string { return []string{r.form.Get("assertion")} }},
		} {
			t.Run(fmt.Sprint(tt.name, " ", status), func(t *testing.T) {
				t.Parallel()
				f := newFakeIssuer(t)
				f.answer = func(w http.ResponseWriter, r received) {
					said, _ := json.Marshal("not good: " + strings.Join(tt.secret(r), " "))
					answerJSON(status, `{"error":"invalid_client","error_description":`+strings.ReplaceAll(string(said), "/", `\/`)+`}`)(w, nil)
				}
				_, err := ask(t, tt.make(f.URL), f, nil)
				var refusal *ServerError
				if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "not good: [redacted]") {
					t.Fatalf("err = %v", err)
				}
				for _, secret := range tt.secret(f.seen()[0]) {
					if strings.Contains(fmt.Sprintf("%v %+v", err, refusal), secret) || secret == "" {
						t.Errorf("the error has %q: %v", secret, err)
					}
				}
			})
		}
	}
}

// TestEchoesOfRegistration: nor does the initial access token.
func TestEchoesOfRegistration(t *testing.T) {
	t.Parallel()
	const token = "initial/access+token=="
	w := newWorld(t)
	w.hook("POST /register", func(rw http.ResponseWriter, r *http.Request) {
		said, _ := json.Marshal("not good: " + r.Header.Get("Authorization"))
		answerJSON(http.StatusUnauthorized, `{"error":"invalid_token","error_description":`+string(said)+`}`)(rw, r)
	})
	c := w.client(func(o *Options) {
		o.Metadata.InitialAccessToken, o.Metadata.InitialAccessTokenIssuer = token, w.as.URL
	})
	err := c.Login(t.Context())
	var refusal *ServerError
	if !errors.As(err, &refusal) || refusal.Description != "not good: [redacted]" || strings.Contains(err.Error(), token) {
		t.Errorf("Login = %v", err)
	}
}

// TestEchoesInOtherSpellings: a server may repeat the form as it came, or its own
// percent-encoding of it.
func TestEchoesInOtherSpellings(t *testing.T) {
	t.Parallel()
	const secret = "pa/ss+word == long"
	for name, spell := range map[string]func(string) string{"as a query": url.QueryEscape, "as a path": url.PathEscape, "as it is": strings.Clone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.hook("POST /token", func(rw http.ResponseWriter, r *http.Request) {
				said, _ := json.Marshal("client_secret=" + spell(r.PostFormValue("client_secret")))
				answerJSON(http.StatusUnauthorized, `{"error":"invalid_client","error_description":`+string(said)+`}`)(rw, r)
			})
			c := w.client(func(o *Options) {
				o.Registered = []RegisteredClient{{Issuer: w.as.URL, ClientID: "app", ClientSecret: secret, AuthMethod: authPost}}
			})
			var refusal *ServerError
			if err := c.Login(t.Context()); !errors.As(err, &refusal) || refusal.Description != "client_secret=[redacted]" {
				t.Errorf("Login = %v", err)
			}
		})
	}
}
