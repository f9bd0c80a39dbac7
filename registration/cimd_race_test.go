package registration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// A host confirms the document that one process has, while another process reads
// its successor. The successor stays: its validators stand beside its client.
func TestCI16_ConfirmedAndReplacedAtOnce(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		slow, fast := newReader(t, db), newReader(t, db)
		slow.answer = serves("Quill", "ETag", `"1"`)
		slow.get(t)
		for _, r := range []*reader{slow, fast} {
			r.clock.Advance(2 * time.Hour)
		}
		slow.answer, fast.answer = status(http.StatusNotModified), serves("Quill 2", "ETag", `"2"`)
		release := slow.hold()
		type result struct {
			c   *registration.Client
			err error
		}
		done := make(chan result, 1)
		go func() {
			c, err := slow.Resolve(from(t, "192.0.2.1"), docURL)
			done <- result{c, err}
		}()
		<-slow.began
		fast.get(t)
		release()
		r := <-done
		if r.err != nil || r.c.DisplayName() != "Quill 2" {
			t.Errorf("the slow process has %+v, %v; want what is kept", r.c, r.err)
		}
		doc, err := db.GetClientDocument(t.Context(), docURL)
		if err != nil || doc.ETag != `"2"` {
			t.Errorf("kept validator %s, %v; the client is Quill 2", doc.ETag, err)
		}
	})
}

// CI-14: who names documents that are not there cannot keep those of a known
// client on the same site from being read.
func TestCI14_StrangersDoNotSpendForKnownClients(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		r := newReader(t, db, func(o *registration.DocumentOptions) {
			o.Budget = registration.FetchBudget{PerSource: 3, PerSite: 5, Total: 100}
		})
		r.get(t)
		r.clock.Advance(2 * time.Hour)
		r.answer = status(http.StatusNotFound)
		for i := range 9 {
			r.refused(t, fmt.Sprintf("198.51.100.%d", i/3), fmt.Sprintf("https://app.example/none/%d", i))
		}
		before := r.count()
		if before != 1+5 {
			t.Fatalf("%d fetches, want the site's budget spent", before)
		}
		r.answer = serves("Quill 2")
		if c := r.get(t); c.DisplayName() != "Quill 2" || r.count() != before+1 {
			t.Errorf("the known client is %q after %d fetches, want it read again", c.DisplayName(), r.count()-before)
		}
	})
}

// clients tells registration.Store from audit.Store in shop.
type clients = registration.Store

// shop is a store of one client, in which the budget of one source is spent. It
// says so only when the test lets it.
type shop struct {
	clients
	registration.DocumentStore
	audit.Store
	broke string
	say   chan struct{}
}

func (*shop) InTx(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }
func (*shop) Append(context.Context, audit.Event) error                      { return nil }
func (*shop) GetClient(context.Context, string) (registration.Client, error) {
	return registration.Client{}, store.ErrNotFound
}
func (*shop) HoldClient(context.Context, string) (registration.Client, error) {
	return registration.Client{}, store.ErrNotFound
}
func (*shop) CreateClient(context.Context, registration.Client) error { return nil }
func (*shop) GetClientDocument(context.Context, string) (registration.ClientDocument, error) {
	return registration.ClientDocument{}, store.ErrNotFound
}
func (*shop) PutClientDocument(context.Context, registration.ClientDocument) error { return nil }
func (s *shop) SpendFetch(_ context.Context, name string, _ int, _, _ time.Time) (bool, error) {
	if name != "source "+s.broke {
		return true, nil
	}
	<-s.say
	return false, nil
}

// CI-14: somebody whose budget is spent asks for a client all the time. Others who
// come meanwhile wait for the same answer, and must not get theirs.
func TestCI14_SpentBudgetIsNotShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shop{broke: "198.51.100.1", say: make(chan struct{})}
		h := &hosts{answer: serves("Quill")}
		d, err := registration.NewDocuments(registration.DocumentOptions{Clients: s, Documents: s, Audit: s, Tx: s, Fetch: h})
		if err != nil {
			t.Fatal(err)
		}
		resolve := func(ip string, err *error) func() {
			return func() { _, *err = d.Resolve(from(t, ip), docURL) }
		}
		var attacker, person error
		go resolve(s.broke, &attacker)()
		synctest.Wait() // for SpendFetch
		go resolve("203.0.113.9", &person)()
		synctest.Wait() // for the same flight
		close(s.say)
		synctest.Wait()
		var limit *oauth.Error
		if !errors.As(attacker, &limit) || limit.HTTPStatus() != http.StatusTooManyRequests {
			t.Errorf("the source whose budget is spent: %v, want 429", attacker)
		}
		if person != nil || h.count() != 1 {
			t.Errorf("another source: %v after %d fetches, want the client", person, h.count())
		}
	})
}

// A document on which we fail must not end the process: what reads it runs in no
// request's goroutine.
func TestDocuments_PanicIsAnError(t *testing.T) {
	t.Parallel()
	r := newReader(t, testkit.OpenSQLite(t))
	r.answer = func(string, netguard.GetOptions) (*netguard.Response, error) { panic("unreadable") }
	if c, err := r.Resolve(from(t, "192.0.2.1"), docURL); err == nil {
		t.Errorf("resolved to %+v", c)
	}
	r.answer = serves("Quill")
	r.get(t)
}

// CI-16: a host that takes back what its document allowed is believed within a
// day, however it does so.
func TestCI16_DocumentTakenBack(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		r := newReader(t, db)
		r.get(t)
		r.answer = func(url string, _ netguard.GetOptions) (*netguard.Response, error) {
			body := fmt.Sprintf(`{"client_id":%q,"redirect_uris":[],"token_endpoint_auth_method":"none"}`, url)
			return &netguard.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}, nil
		}
		r.clock.Advance(23 * time.Hour)
		r.get(t)
		r.clock.Advance(2 * time.Hour)
		for range 2 { // when it is asked, and when it was asked a moment ago
			if got := r.refused(t, "192.0.2.1", docURL); got != registration.ProblemInvalid {
				t.Errorf("a day after it was last good: %q", got)
			}
		}
	})
}
