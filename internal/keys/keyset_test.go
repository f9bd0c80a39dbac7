package keys_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newSet(t testing.TB, st keys.Store, secrets *keys.Secrets, c *clock) *keys.Set {
	t.Helper()
	s, err := keys.NewSet(keys.SetOptions{Store: st, Secrets: secrets, Issuer: issuer, Tokens: 10 * time.Minute, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ensured(t testing.TB, st keys.Store) (*keys.Set, *clock) {
	t.Helper()
	c := &clock{now: t0}
	s := newSet(t, st, keys.GenerateSecrets(), c)
	if err := s.Ensure(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s, c
}

func published(t *testing.T, s *keys.Set) []string {
	t.Helper()
	body, _ := s.JWKS()
	var doc struct {
		Keys []struct {
			KID string `json:"kid"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	var kids []string
	for _, k := range doc.Keys {
		kids = append(kids, k.KID)
	}
	return kids
}

func sign(t *testing.T, s *keys.Set) (token, kid string) {
	t.Helper()
	token, kid, err := s.Sign("at+jwt", []byte(`{"sub":"a"}`))
	if err != nil {
		t.Fatalf("Sign: %v", err)
	}
	return token, kid
}

func TestD28EnsureAtOnce(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		secrets, c := keys.GenerateSecrets(), &clock{now: t0}
		var wg sync.WaitGroup
		for range 4 {
			s := newSet(t, db, secrets, c)
			wg.Go(func() {
				if err := s.Ensure(context.Background()); err != nil {
					t.Errorf("Ensure: %v", err)
				}
			})
		}
		wg.Wait()
		list, err := db.ListKeys(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%d keys after four first starts (%v)", len(list), err)
		}
		if events, err := db.ListEvents(t.Context(), 10); err != nil || len(events) != 1 || events[0].Name != "key.created" {
			t.Errorf("D35 events = %v (%v)", events, err)
		}
	})
}

// TestMM04Rotate follows one rotation through its whole life: D28, MM-04.
func TestMM04Rotate(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		ctx := t.Context()
		s, c := ensured(t, db)
		oldToken, old := sign(t, s)

		done, err := s.Rotate(ctx, false)
		if err != nil {
			t.Fatal(err)
		}
		next := done.Next.KID
		if done.Next.State != keys.StateNext || !done.Next.ActiveAt.Equal(t0.Add(6*time.Minute)) {
			t.Errorf("next = %+v, want it to sign 6 minutes on", done.Next)
		}
		if kids := published(t, s); len(kids) != 2 || !slices.Contains(kids, next) {
			t.Errorf("published %v, want old and next at once", kids)
		}
		if _, err := s.Rotate(ctx, false); !errors.Is(err, keys.ErrRotating) {
			t.Errorf("second rotation: err = %v, want ErrRotating", err)
		}
		c.Add(6*time.Minute - time.Millisecond)
		lastToken, kid := sign(t, s)
		if kid != old {
			t.Error("next signed before every cached key set had expired")
		}
		c.Add(time.Millisecond)
		if _, kid := sign(t, s); kid != next {
			t.Error("next does not sign when its time has come")
		}
		for step, ago := range map[string]time.Duration{"old keys last token": 11*time.Minute - time.Millisecond} {
			c.Add(ago)
			reload(t, s)
			if _, _, err := s.Verify("at+jwt", lastToken); err != nil {
				t.Errorf("%s is refused before it has expired: %v", step, err)
			}
		}
		c.Add(time.Millisecond)
		reload(t, s)
		if kids := published(t, s); !slices.Equal(kids, []string{next}) {
			t.Errorf("published %v, want only %s", kids, next)
		}
		if _, _, err := s.Verify("at+jwt", oldToken); !errors.Is(err, keys.ErrSignature) {
			t.Errorf("token of the retired key: err = %v, want ErrSignature", err)
		}
		if _, err := s.Rotate(ctx, false); err != nil {
			t.Fatal(err)
		}
		stored, err := db.ListKeys(ctx)
		if err != nil || slices.ContainsFunc(stored, func(k keys.Key) bool { return k.KID == old }) {
			t.Errorf("the retired private key is still stored (%v)", err)
		}
	})
}

func reload(t *testing.T, s *keys.Set) {
	t.Helper()
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRotateNow(t *testing.T) {
	s, c := ensured(t, testkit.OpenSQLite(t))
	_, old := sign(t, s)
	waiting, err := s.Rotate(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	c.Add(time.Minute)
	done, err := s.Rotate(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if done.Next.KID != waiting.Next.KID || done.Next.State != keys.StateActive || !done.Immediate {
		t.Errorf("rotation = %+v, want the waiting key %s to sign", done, waiting.Next.KID)
	}
	if _, kid := sign(t, s); kid != done.Next.KID {
		t.Errorf("signs with %s, want %s", kid, done.Next.KID)
	}
	if len(done.Previous) != 1 || done.Previous[0].KID != old || !done.Previous[0].RetireAt.Equal(c.Now().Add(11*time.Minute)) {
		t.Errorf("previous = %+v, want %s until 11 minutes from now", done.Previous, old)
	}
	if done, err = s.Rotate(t.Context(), true); err != nil || done.Next.KID == waiting.Next.KID {
		t.Errorf("a third rotation reused the key (%v)", err)
	}
}

func TestRotateAtOnce(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		s, _ := ensured(t, db)
		var wg sync.WaitGroup
		var mu sync.Mutex
		rotated := 0
		for range 4 {
			wg.Go(func() {
				_, err := s.Rotate(context.Background(), false)
				if err != nil && !errors.Is(err, keys.ErrRotating) {
					t.Errorf("Rotate: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					rotated++
				}
			})
		}
		wg.Wait()
		if list, err := db.ListKeys(t.Context()); rotated != 1 || len(list) != 2 || err != nil {
			t.Errorf("%d of 4 rotations at once did something, %d keys (%v)", rotated, len(list), err)
		}
	})
}

// failing is a store whose reads of keys can be made to fail.
type failing struct {
	keys.Store
	err error
}

func (f *failing) ListKeys(ctx context.Context) ([]keys.Key, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.Store.ListKeys(ctx)
}

func TestReloadKeepsLastSnapshot(t *testing.T) {
	st := &failing{Store: testkit.OpenSQLite(t)}
	s, _ := ensured(t, st)
	before, etag := s.JWKS()
	st.err = errors.New("database is away")
	if err := s.Reload(t.Context()); !errors.Is(err, st.err) {
		t.Errorf("Reload = %v, want the store's error", err)
	}
	if after, again := s.JWKS(); string(after) != string(before) || etag != again {
		t.Error("a failed read changed the published keys")
	}
	sign(t, s)
}

func TestKeysOfAnotherSecret(t *testing.T) {
	db := testkit.OpenSQLite(t)
	_, c := ensured(t, db)
	stranger := newSet(t, db, keys.GenerateSecrets(), c)
	if err := stranger.Ensure(t.Context()); err == nil {
		t.Error("keys sealed with another secret were opened")
	}
	if _, _, err := stranger.Sign("at+jwt", []byte(`{}`)); !errors.Is(err, keys.ErrNoKey) {
		t.Errorf("Sign = %v, want ErrNoKey", err)
	}
}

func TestSign(t *testing.T) {
	s, _ := ensured(t, testkit.OpenSQLite(t))
	token, kid := sign(t, s)
	claims, by, err := s.Verify("at+jwt", token)
	if err != nil || by != kid || string(claims) != `{"sub":"a"}` {
		t.Fatalf("Verify = %s, %s, %v", claims, by, err)
	}
	header, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0])
	if want := `{"alg":"ES256","typ":"at+jwt","kid":"` + kid + `"}`; err != nil || string(header) != want {
		t.Errorf("header = %s, want %s", header, want)
	}
	other, _, err := s.Sign("statuslist+jwt", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(token, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"at+jwt","kid":"` + kid + `"}`))
	unknown := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","typ":"at+jwt","kid":"x"}`))
	for name, bad := range map[string]string{
		"other typ":         other,
		"payload changed":   parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"b"}`)) + "." + parts[2],
		"signature cut":     parts[0] + "." + parts[1] + ".",
		"alg none":          none + "." + parts[1] + ".",
		"unknown kid":       unknown + "." + parts[1] + "." + parts[2],
		"four parts":        token + ".x",
		"not a token":       "x",
		"header not base64": "%." + parts[1] + "." + parts[2],
		"header not JSON":   "eA." + parts[1] + "." + parts[2],
		"empty":             "",
		"a line break":      parts[0][:9] + "\n" + parts[0][9:] + "." + parts[1] + "." + parts[2],
		"in the signature":  token + "\r\n",
		"padding":           token + "==",
		"stray bits":        token[:len(token)-1] + string(stray(token[len(token)-1])),
	} {
		if _, _, err := s.Verify("at+jwt", bad); !errors.Is(err, keys.ErrSignature) {
			t.Errorf("%s: err = %v, want ErrSignature", name, err)
		}
	}
}

// stray is a last character of an ES256 signature with another of the bits that it
// does not need.
func stray(last byte) byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return alphabet[strings.IndexByte(alphabet, last)+1]
}

func TestSignAtOnce(t *testing.T) {
	s, _ := ensured(t, testkit.OpenSQLite(t))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				token, _, err := s.Sign("at+jwt", []byte(`{"sub":"a"}`))
				if err != nil {
					t.Errorf("Sign: %v", err)
					return
				}
				if _, _, err := s.Verify("at+jwt", token); err != nil {
					t.Errorf("Verify: %v", err)
				}
				if err := s.Reload(context.Background()); err != nil {
					t.Errorf("Reload: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestMM03JWKS(t *testing.T) {
	s, _ := ensured(t, testkit.OpenSQLite(t))
	if _, err := s.Rotate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(keys.Handler(s))
	t.Cleanup(srv.Close)
	resp, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var doc struct {
		Keys []map[string]string `json:"keys"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Keys) != 2 || doc.Keys[0]["kid"] == doc.Keys[1]["kid"] {
		t.Fatalf("keys = %v, want two with different kid", doc.Keys)
	}
	for _, k := range doc.Keys {
		var members []string
		for name := range k {
			members = append(members, name)
		}
		slices.Sort(members)
		if want := []string{"alg", "crv", "kid", "kty", "use", "x", "y"}; !slices.Equal(members, want) {
			t.Errorf("members = %v, want %v", members, want)
		}
		if k["alg"] != "ES256" || k["use"] != "sig" || k["kty"] != "EC" || k["crv"] != "P-256" || len(k["kid"]) != 43 {
			t.Errorf("key = %v", k)
		}
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": "public, max-age=300",
		"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Credentials": ""} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	_, etag := s.JWKS()
	req := httptest.NewRequest(http.MethodGet, "/jwks.json", nil)
	req.Header.Set("If-None-Match", etag)
	rec := httptest.NewRecorder()
	keys.Handler(s).ServeHTTP(rec, req)
	if rec.Code != http.StatusNotModified || rec.Body.Len() != 0 {
		t.Errorf("If-None-Match: %d with %d bytes, want 304", rec.Code, rec.Body.Len())
	}
}

func TestListKeysStates(t *testing.T) {
	s, c := ensured(t, testkit.OpenSQLite(t))
	if _, err := s.Rotate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	states := func() string {
		list, err := s.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, k := range list {
			got = append(got, string(k.State))
		}
		return strings.Join(got, " ")
	}
	if got := states(); got != "active next" {
		t.Errorf("at once: %s", got)
	}
	c.Add(6 * time.Minute)
	if got := states(); got != "retiring active" {
		t.Errorf("after 6 minutes: %s", got)
	}
	c.Add(11 * time.Minute)
	if got := states(); got != "retired active" {
		t.Errorf("after 17 minutes: %s", got)
	}
}

func BenchmarkSign(b *testing.B) {
	s, _ := ensured(b, testkit.OpenSQLite(b))
	claims := []byte(`{"iss":"https://as.example","sub":"3f1c9a","aud":"https://mcp.example/files","exp":1772366400,` +
		`"iat":1772365800,"jti":"QWERTYUIOPASDFGHJKLZXCVBNM","client_id":"c_8f2a","scope":"files:read files:write","grant_id":"0123456789abcdef0123456789abcdef"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Sign("at+jwt", claims); err != nil {
			b.Fatal(err)
		}
	}
}
