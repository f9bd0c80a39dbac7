package authserver_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// algOf returns the alg of a token's header.
func algOf(t *testing.T, token string) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0])
	if err != nil {
		t.Fatal(err)
	}
	var h struct {
		Algorithm string `json:"alg"`
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		t.Fatal(err)
	}
	return h.Algorithm
}

// advertisedAlgorithms is what the openid-configuration says.
func (k *kit) advertisedAlgorithms() []string {
	k.t.Helper()
	var doc struct {
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := json.Unmarshal([]byte(k.fetch("/.well-known/openid-configuration", nil).raw), &doc); err != nil {
		k.t.Fatal(err)
	}
	return doc.Algorithms
}

// TestD7_SigningAlgorithm: whatever signs, the middleware verifies it and the
// metadata says it; a change keeps every token good (D28, MM-04).
func TestD7_SigningAlgorithm(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		k := newKit(t, db, func(c *config.Config) { c.SigningAlgorithm = "EdDSA" })
		mcp := k.mcpServer(testkit.Resource, nil)
		a := k.register(appRedirect)
		first := k.connect(a, nil)
		if alg := algOf(t, first.body.AccessToken); alg != "EdDSA" {
			t.Errorf("first start: alg %s", alg)
		}
		if w := call(t, mcp, first.body.AccessToken, ""); w.Code != 200 {
			t.Fatalf("EdDSA: %d %s", w.Code, w.Body)
		}
		if got := k.advertisedAlgorithms(); !slices.Equal(got, []string{"EdDSA"}) {
			t.Errorf("A3 advertised %v", got)
		}

		// the operator writes RS256 and restarts
		k.Config.SigningAlgorithm = "RS256"
		k.Server = k.Again(t)
		mcp = k.mcpServer(testkit.Resource, nil)
		second := k.refresh(a, first.body.RefreshToken, nil)
		want(t, second, 200, "")
		if alg := algOf(t, second.body.AccessToken); alg != "EdDSA" {
			t.Errorf("D28 before every cached key set has expired: alg %s", alg)
		}
		if got := k.advertisedAlgorithms(); !slices.Equal(got, []string{"EdDSA", "RS256"}) {
			t.Errorf("A3 advertised %v during the change", got)
		}
		k.Clock.Advance(6 * time.Minute)
		third := k.refresh(a, second.body.RefreshToken, nil)
		want(t, third, 200, "")
		if alg := algOf(t, third.body.AccessToken); alg != "RS256" {
			t.Errorf("D28 after six minutes: alg %s", alg)
		}
		for name, token := range map[string]string{"MM-04 the last EdDSA token": second.body.AccessToken, "the first RS256 token": third.body.AccessToken} {
			if w := call(t, mcp, token, ""); w.Code != 200 {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		}
		if !strings.Contains(k.Logs.String(), `"event":"key.adopted"`) {
			t.Error("the change is not in the log")
		}
		// the same again changes nothing
		before := k.rowsBut()
		k.Server = k.Again(t)
		if !slices.Equal(before, k.rowsBut()) {
			t.Error("another start with the same algorithm changed rows")
		}
	})
}
