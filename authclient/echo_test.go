package authclient

import (
	"crypto/elliptic"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
