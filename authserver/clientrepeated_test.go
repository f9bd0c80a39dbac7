package authserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// An app that registers again while a person looks at its page, as a second
// process of it does, is the same client: the answer counts.
func TestConsentWhileTheAppRegistersAgain(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		body, err := json.Marshal(map[string]any{"client_name": "Quill", "redirect_uris": []string{loopbackRedirect},
			"token_endpoint_auth_method": "none"})
		if err != nil {
			t.Fatal(err)
		}
		register := func() string {
			resp, err := k.Client().Post(k.URL("/register"), "application/json", strings.NewReader(string(body)))
			if err != nil {
				t.Fatal(err)
			}
			var out struct {
				ClientID string `json:"client_id"`
			}
			raw := testkit.Body(t, resp)
			if err := json.Unmarshal([]byte(raw), &out); err != nil || resp.StatusCode != http.StatusCreated {
				t.Fatalf("register: %d %s", resp.StatusCode, raw)
			}
			return out.ClientID
		}
		a := app{id: register(), method: registration.AuthNone, redirect: loopbackRedirect}
		page := k.toConsent(k.person, k.authorizeURL(a, nil))
		k.Clock.Advance(time.Minute)
		if again := register(); again != a.id {
			t.Fatalf("the second registration is %s, want %s", again, a.id)
		}
		after, err := k.person.Allow(k.ctx, page)
		if err != nil || after.Leaves == nil || after.Leaves.Query().Get("code") == "" {
			t.Errorf("%v, %v; want the way back with a code", after, err)
		}
	})
}
