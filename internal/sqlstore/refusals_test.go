package sqlstore_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// consentFor keeps the consent that a refusal is about.
func consentFor(t *testing.T, db *sqlstore.Store, r consent.Refusal) {
	t.Helper()
	if err := db.PutConsent(t.Context(), consent.Consent{Subject: r.Subject, ClientID: r.ClientID, RedirectURI: r.RedirectURI,
		Resource: r.Resource, CreatedAt: r.RefusedAt, UpdatedAt: r.RefusedAt}); err != nil {
		t.Fatal(err)
	}
}

func aRefusal(subject string) consent.Refusal {
	return consent.Refusal{Subject: subject, ClientID: "quill", RedirectURI: "http://localhost/cb", Resource: "https://mcp.example",
		Scopes: []string{"a", "b"}, RefusedAt: noon()}
}

// TestRefusalsBecomeQuiet: three within an hour, whatever came before.
func TestRefusalsBecomeQuiet(t *testing.T) {
	t.Parallel()
	const day = 24 * 60
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		for i, tt := range []struct {
			name    string
			minutes []int // when it is refused
			want    bool  // quiet a minute after the last
		}{
			{"none", nil, false},
			{"one", []int{0}, false},
			{"two", []int{0, 1}, false},
			{"three", []int{0, 1, 2}, true},
			{"three at the same moment", []int{0, 0, 0}, true},
			{"three just within the hour", []int{0, 30, 59}, true},
			{"three in an hour and more", []int{0, 30, 60}, false},
			{"the last three of four", []int{0, 55, 61, 62}, true},
			{"every half hour", []int{0, 31, 62, 93, 124}, false},
			{"a fourth", []int{0, 1, 2, 3}, true},
			{"again a day later", []int{0, 1, 2, day + 3}, false},
			{"three times again a day later", []int{0, 1, 2, day + 3, day + 4, day + 5}, true},
		} {
			t.Run(tt.name, func(t *testing.T) {
				r := aRefusal(fmt.Sprint("person ", i))
				consentFor(t, db, r)
				for _, m := range tt.minutes {
					r.RefusedAt = noon().Add(time.Duration(m) * time.Minute)
					if err := db.CountRefusal(t.Context(), r, r.RefusedAt.Add(-time.Hour)); err != nil {
						t.Fatal(err)
					}
				}
				now := r.RefusedAt.Add(time.Minute)
				if got, err := db.IsQuiet(t.Context(), r, now.Add(-consent.QuietFor)); err != nil || got != tt.want {
					t.Errorf("quiet: %t, %v; want %t", got, err, tt.want)
				}
				if got, err := db.IsQuiet(t.Context(), r, now.Add(-time.Minute)); err != nil || got {
					t.Errorf("quiet when what is longer ago does not count: %t, %v", got, err)
				}
			})
		}
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, first := t.Context(), aRefusal("mina")
		requireFull(t, reflect.ValueOf(first), "Refusal")
		quiet := func(r consent.Refusal) {
			t.Helper()
			for range 3 {
				if err := db.CountRefusal(ctx, r, r.RefusedAt.Add(-time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
		}
		consentFor(t, db, first)
		quiet(first)
		others := map[string]func(*consent.Refusal){
			"one scope of the set":   func(r *consent.Refusal) { r.Scopes = []string{"a"} },
			"one scope more":         func(r *consent.Refusal) { r.Scopes = []string{"a", "b", "c"} },
			"another redirect URI":   func(r *consent.Refusal) { r.RedirectURI = "http://localhost/other" },
			"another MCP server":     func(r *consent.Refusal) { r.Resource = "https://other.example" },
			"another client":         func(r *consent.Refusal) { r.ClientID = "quill-2" },
			"another person":         func(r *consent.Refusal) { r.Subject = "noor" },
			"no scope, stay instead": func(r *consent.Refusal) { r.Scopes = []string{"offline_access"} },
		}
		since := noon().Add(-time.Second)
		is := func(r consent.Refusal) bool {
			t.Helper()
			got, err := db.IsQuiet(ctx, r, since)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		ported := first
		ported.RedirectURI = "http://localhost:50000/cb"
		if !is(first) || !is(ported) {
			t.Error("what was refused is not quiet, loopback port aside")
		}
		for name, change := range others {
			r := first
			if change(&r); is(r) {
				t.Errorf("%s is quiet too", name)
			}
		}

		elsewhere, noor := first, first
		elsewhere.Resource, noor.Subject = "https://other.example", "noor"
		for _, r := range []consent.Refusal{elsewhere, noor} {
			consentFor(t, db, r)
			quiet(r)
		}
		if list, err := db.ListQuiet(ctx, "mina", since); err != nil || !cmp.Equal(list, []consent.Refusal{first, elsewhere}) {
			t.Errorf("ListQuiet: %v\n%s", err, cmp.Diff([]consent.Refusal{first, elsewhere}, list))
		}
		if n, err := db.DeleteRefusals(ctx, "mina", "quill", first.Resource); err != nil || n != 1 {
			t.Errorf("DeleteRefusals: %d, %v; want 1", n, err)
		}
		if got := []bool{is(first), is(elsewhere), is(noor)}; !slices.Equal(got, []bool{false, true, true}) {
			t.Errorf("quiet after DeleteRefusals: %t", got)
		}
		if err := db.DeleteConsents(ctx, "", "quill", elsewhere.Resource); err != nil {
			t.Fatal(err)
		}
		if got := []bool{is(elsewhere), is(noor)}; !slices.Equal(got, []bool{false, true}) {
			t.Errorf("D10: quiet after the consent of the first is forgotten: %t", got)
		}
		if err := db.CountRefusal(ctx, elsewhere, since); err == nil {
			t.Error("a refusal beyond a consent that is not there was kept")
		}

		// a day later only the consent is left
		if err := db.Collect(ctx, noon().Add(consent.QuietFor)); err != nil {
			t.Fatal(err)
		}
		if n, err := db.DeleteRefusals(ctx, "noor", "quill", noor.Resource); err != nil || n != 0 {
			t.Errorf("ST-10: %d refusals left after a day, %v; want 0", n, err)
		}
		if _, err := db.GetConsent(ctx, "noor", "quill", noor.RedirectURI, noor.Resource); err != nil {
			t.Errorf("ST-10: the consent was collected: %v", err)
		}
	})
}

// TestRefusalsOfTwoProcesses: of refusals at the same moment in two processes each counts.
func TestRefusalsOfTwoProcesses(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx := t.Context()
		for i := range 20 {
			r := aRefusal(fmt.Sprint("person ", i))
			consentFor(t, db, r)
			if err := db.CountRefusal(ctx, r, r.RefusedAt.Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
			var both sync.WaitGroup
			errs := make([]error, 2)
			for p := range errs {
				both.Go(func() {
					errs[p] = db.InTx(ctx, func(ctx context.Context) error {
						if _, err := db.HoldConsent(ctx, r.Subject, r.ClientID, r.RedirectURI, r.Resource); err != nil {
							return err
						}
						return db.CountRefusal(ctx, r, r.RefusedAt.Add(-time.Hour))
					})
				})
			}
			both.Wait()
			if errs[0] != nil || errs[1] != nil {
				t.Fatal(errs)
			}
			if got, err := db.IsQuiet(ctx, r, r.RefusedAt.Add(-time.Second)); err != nil || !got {
				t.Fatalf("three refusals, two of them at once: quiet %t, %v", got, err)
			}
		}
	})
}
