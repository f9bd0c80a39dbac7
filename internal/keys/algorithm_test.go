package keys_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// newSetOf is newSet with an algorithm.
func newSetOf(t testing.TB, st keys.Store, secrets *keys.Secrets, c *clock, alg keys.Algorithm) *keys.Set {
	t.Helper()
	s, err := keys.NewSet(keys.SetOptions{Store: st, Secrets: secrets, Issuer: issuer, Tokens: 10 * time.Minute, Now: c.Now, Algorithm: alg})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func header(t *testing.T, token string) map[string]string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0])
	if err != nil {
		t.Fatal(err)
	}
	var h map[string]string
	if err := json.Unmarshal(raw, &h); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestD7_Algorithms(t *testing.T) {
	members := map[keys.Algorithm][]string{
		keys.ES256: {"alg", "crv", "kid", "kty", "use", "x", "y"},
		keys.EdDSA: {"alg", "crv", "kid", "kty", "use", "x"},
		keys.RS256: {"alg", "e", "kid", "kty", "n", "use"},
	}
	if got := slices.Sorted(maps.Keys(members)); len(got) != len(keys.Algorithms()) {
		t.Fatalf("algorithms %v are tested, there are %v", got, keys.Algorithms())
	}
	for alg, want := range members {
		t.Run(string(alg), func(t *testing.T) {
			t.Parallel()
			secrets, c := keys.GenerateSecrets(), &clock{now: t0}
			db := testkit.OpenSQLite(t)
			s := newSetOf(t, db, secrets, c, alg)
			token, kid := sign(t, s)
			if h := header(t, token); h["alg"] != string(alg) || h["kid"] != kid || h["typ"] != "at+jwt" {
				t.Errorf("header %v", h)
			}
			if claims, by, err := s.Verify("at+jwt", token); err != nil || by != kid || string(claims) != `{"sub":"a"}` {
				t.Errorf("Verify = %s, %s, %v", claims, by, err)
			}
			body, _ := s.JWKS()
			set, err := jwk.Parse(body)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := jws.Verify([]byte(token), jws.WithKeySet(set)); err != nil {
				t.Errorf("the published key does not verify: %v", err)
			}
			var doc struct{ Keys []map[string]string }
			if err := json.Unmarshal(body, &doc); err != nil || len(doc.Keys) != 1 {
				t.Fatalf("%s (%v)", body, err)
			}
			if got := slices.Sorted(maps.Keys(doc.Keys[0])); !slices.Equal(got, want) {
				t.Errorf("MM-03 members %v, want %v", got, want)
			}
			parsed, _ := set.Key(0)
			if sum, err := jwk.Pem(parsed); err != nil || len(sum) == 0 {
				t.Errorf("not a public key: %v", err)
			}
			if got := s.Algorithms(); !slices.Equal(got, []string{string(alg)}) {
				t.Errorf("Algorithms = %v", got)
			}
			// the stored key opens again, and only as what it is
			again := newSetOf(t, db, secrets, c, keys.ES256)
			if _, _, err := again.Verify("at+jwt", token); err != nil {
				t.Errorf("after a restart: %v", err)
			}
			for _, other := range keys.Algorithms() {
				if other == alg {
					continue
				}
				parts := strings.Split(token, ".")
				h := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"` + string(other) + `","typ":"at+jwt","kid":"` + kid + `"}`))
				if _, _, err := s.Verify("at+jwt", h+"."+parts[1]+"."+parts[2]); !errors.Is(err, keys.ErrSignature) {
					t.Errorf("JW-07 alg %s with a key of %s: %v", other, alg, err)
				}
			}
		})
	}
	if _, err := keys.NewSet(keys.SetOptions{Store: testkit.OpenSQLite(t), Secrets: keys.GenerateSecrets(), Issuer: issuer,
		Tokens: time.Minute, Algorithm: "HS256"}); err == nil || !strings.Contains(err.Error(), "HS256") {
		t.Errorf("HS256 was accepted: %v", err)
	}
}

// TestD28_Adopt follows a change of signing_algorithm: the course of every
// rotation, once for all processes.
func TestD28_Adopt(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		secrets, c := keys.GenerateSecrets(), &clock{now: t0}
		before := newSetOf(t, db, secrets, c, keys.ES256)
		if _, adopted, err := before.Adopt(t.Context()); err != nil || adopted {
			t.Fatalf("adopted what it has: %t, %v", adopted, err)
		}
		old, _ := sign(t, before)
		s := newSetOf(t, db, secrets, c, keys.EdDSA)
		next, adopted, err := s.Adopt(t.Context())
		if err != nil || !adopted || next.State != keys.StateNext || next.Algorithm != "EdDSA" {
			t.Fatalf("Adopt = %+v, %t, %v", next, adopted, err)
		}
		if _, adopted, err := newSetOf(t, db, secrets, c, keys.EdDSA).Adopt(t.Context()); err != nil || adopted {
			t.Errorf("a second process adopted again: %t, %v", adopted, err)
		}
		if got := s.Algorithms(); !slices.Equal(got, []string{"ES256", "EdDSA"}) {
			t.Errorf("published algorithms %v", got)
		}
		if token, _ := sign(t, s); header(t, token)["alg"] != "ES256" {
			t.Error("the next key signs before the cached key sets have expired")
		}
		c.Add(6 * time.Minute)
		token, kid := sign(t, s)
		if header(t, token)["alg"] != "EdDSA" || kid != next.KID {
			t.Errorf("after 6 minutes: %v", header(t, token))
		}
		if _, _, err := s.Verify("at+jwt", old); err != nil {
			t.Errorf("MM-04 a token of the old algorithm: %v", err)
		}
		c.Add(11 * time.Minute)
		reload(t, s)
		if got := s.Algorithms(); !slices.Equal(got, []string{"EdDSA"}) {
			t.Errorf("MM-04 published %v after the last old token has expired", got)
		}
		// a rotation by a command that was told nothing keeps the algorithm
		done, err := before.Rotate(t.Context(), false)
		if err != nil || done.Next.Algorithm != "EdDSA" {
			t.Errorf("Rotate = %+v, %v", done.Next, err)
		}
		var names []string
		events, err := db.ListEvents(t.Context(), 10)
		for _, e := range events {
			names = append(names, e.Name+" "+e.Actor)
		}
		slices.Sort(names)
		if diff := cmp.Diff([]string{"key.created operator", "key.created system", "key.created system", "key.rotated operator", "key.rotated system"}, names); diff != "" || err != nil {
			t.Errorf("D35 events: %s (%v)", diff, err)
		}
	})
}

// A change of mind while a key waits: the last one wins, nothing is lost, and
// servers that disagree do not fill the key set.
func TestD28_AdoptWhileWaiting(t *testing.T) {
	secrets, c := keys.GenerateSecrets(), &clock{now: t0}
	db := testkit.OpenSQLite(t)
	sets := map[keys.Algorithm]*keys.Set{}
	for _, alg := range []keys.Algorithm{keys.ES256, keys.EdDSA, keys.RS256} {
		sets[alg] = newSetOf(t, db, secrets, c, alg)
	}
	for i, alg := range []keys.Algorithm{keys.EdDSA, keys.RS256, keys.ES256} {
		if next, adopted, err := sets[alg].Adopt(t.Context()); err != nil || !adopted {
			t.Fatalf("%d: %+v, %t, %v", i, next, adopted, err)
		}
	}
	if _, _, err := sets[keys.EdDSA].Adopt(t.Context()); !errors.Is(err, keys.ErrRotating) {
		t.Errorf("a fourth key waits: %v", err)
	}
	s := sets[keys.ES256]
	last, _ := sign(t, s)
	c.Add(6*time.Minute + 2*time.Millisecond)
	reload(t, s)
	if token, _ := sign(t, s); header(t, token)["alg"] != "ES256" || header(t, token)["kid"] == header(t, last)["kid"] {
		t.Errorf("signs with %v, want the last key", header(t, token))
	}
	if _, _, err := s.Verify("at+jwt", last); err != nil {
		t.Errorf("MM-04 a token of the first key: %v", err)
	}
}
