package authserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/test/testkit"
)

// setKeys publishes the client's keys at a path of the world's host.
func (w *world) setKeys(t *testing.T, path string, key *testkit.ClientKey) string {
	t.Helper()
	var jwks any
	if err := json.Unmarshal(testkit.JWKS(t, key), &jwks); err != nil {
		t.Fatal(err)
	}
	w.set(path, jwks)
	return w.host.URL + path
}

// again is the same service in a process that has fetched nothing yet.
func (w *world) again(t *testing.T) *kit {
	t.Helper()
	return &kit{Server: w.Again(t), t: t, ctx: w.ctx}
}

// Strangers who name many URLs of one host spend what strangers may have fetched
// there, and nothing else: an approved client whose keys are on that host refreshes
// at a process that has never seen it.
func TestCA11_StrangersSpendNoApprovedClientsBudget(t *testing.T) {
	eachWorld(t, []string{"quill.example"}, func(t *testing.T, w *world) {
		const strangers = 45
		key := testkit.NewClientKey(t, "ES256", "k1")
		uri := w.setKeys(t, "/keys", key)
		approved := map[string]keyApp{
			"registered":    {w.registerKeys(`"jwks_uri":"` + uri + `"`), w.kit, key},
			"of a document": w.keyed("/client.json", w.setKeys(t, "/document-keys", key), key),
		}
		tokens := map[string]string{}
		for name, a := range approved {
			got := w.redeem(a.app, w.code(a.app, nil), a.prove())
			want(t, got, http.StatusOK, "")
			tokens[name] = got.body.RefreshToken
		}
		fresh := w.again(t)
		answers := map[int]int{}
		for i := range strangers {
			s := keyApp{w.registerKeys(fmt.Sprintf(`"jwks_uri":"%s?%d"`, uri, i)), w.kit, key}
			answers[fresh.redeem(s.app, "ost_ac_x", s.prove()).status]++
		}
		if answers[http.StatusServiceUnavailable] == 0 || answers[http.StatusServiceUnavailable] == strangers {
			t.Errorf("strangers were answered %v, want their budget spent at some point", answers)
		}
		for name, a := range approved {
			got := fresh.refresh(a.app, tokens[name], a.prove())
			if got.status != http.StatusOK {
				t.Errorf("the approved client, %s: %d %s", name, got.status, got.raw)
			}
		}
	})
}

// What the network does to a host that may be asked passes, so the client is told
// to come again, with a cold cache too, and never that it is unknown: SDKs throw
// their registration away then (A19). What is refused, and a name that nobody has,
// is told as before, all alike (CI-15).
func TestA19_KeyHostThatTheNetworkLoses(t *testing.T) {
	eachWorld(t, []string{"quill.example"}, func(t *testing.T, w *world) {
		key := testkit.NewClientKey(t, "ES256", "k1")
		away := w.setKeys(t, "/keys", key)
		a := keyApp{w.registerKeys(`"jwks_uri":"` + away + `"`), w.kit, key}
		first := w.redeem(a.app, w.code(a.app, nil), a.prove())
		want(t, first, http.StatusOK, "")

		w.dns.Set("tls.example", addresses(publicAddress)) // whose certificate has another name
		w.dns.Set("closed.example", addresses(closedAddress))
		w.dns.Set("private.example", addresses("10.0.0.1"))
		for name, host := range map[string]string{"TLS": "tls.example", "connection refused": "closed.example"} {
			w.sub("A19 "+name, func(*testing.T) {
				lost := keyApp{w.registerKeys(`"jwks_uri":"https://` + host + `/keys"`), w.kit, key}
				code := w.code(lost.app, nil)
				wantUnavailable(t, w.denied(http.StatusServiceUnavailable, "temporarily_unavailable", func() answer { return w.redeem(lost.app, code, lost.prove()) }))
			})
		}
		w.sub("A19 refresh with a cold cache", func(*testing.T) {
			fresh := w.again(t)
			w.dns.Set("quill.example", addresses(closedAddress))
			wantUnavailable(t, fresh.refresh(a.app, first.body.RefreshToken, a.prove()))
			w.dns.Set("quill.example", addresses(publicAddress))
			w.Clock.Advance(30 * time.Second)
			want(t, fresh.refresh(a.app, first.body.RefreshToken, a.prove()), http.StatusOK, "")
		})
		var same string
		for _, host := range []string{"private.example", "nobody.example"} {
			w.sub("CI-15 "+host, func(t *testing.T) {
				refused := keyApp{w.registerKeys(`"jwks_uri":"https://` + host + `/keys"`), w.kit, key}
				code := w.code(refused.app, nil)
				got := w.denied(http.StatusUnauthorized, "invalid_client", func() answer { return w.redeem(refused.app, code, refused.prove()) })
				if same == "" {
					same = got.raw
				}
				if got.raw != same {
					t.Errorf("%s is answered %s, another one %s", host, got.raw, same)
				}
			})
		}
		w.heardNothing(t)
	})
}
