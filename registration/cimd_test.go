package registration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

const docURL = "https://app.example/client.json"

// hosts is a Fetcher: every foreign host, in this process.
type hosts struct {
	mu     sync.Mutex
	answer func(url string, o netguard.GetOptions) (*netguard.Response, error)
	asked  []string
	last   netguard.GetOptions
	wait   chan struct{} // closed to let answers go; nil does not hold them
	began  chan struct{} // hears of each held request
}

// hold makes requests wait, and returns what lets them go.
func (h *hosts) hold() (release func()) {
	h.wait, h.began = make(chan struct{}), make(chan struct{}, 16)
	return func() { close(h.wait) }
}

func (h *hosts) Get(ctx context.Context, url string, o netguard.GetOptions) (*netguard.Response, error) {
	h.mu.Lock()
	h.asked, h.last = append(h.asked, url), o
	answer, wait := h.answer, h.wait
	h.mu.Unlock()
	if wait != nil {
		h.began <- struct{}{}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return answer(url, o)
}

func (h *hosts) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.asked)
}

func document(id, name string, redirects ...string) string {
	return fmt.Sprintf(`{"client_id":%q,"client_name":%q,"redirect_uris":["%s"],"token_endpoint_auth_method":"none"}`, id, name, strings.Join(redirects, `","`))
}

// serves answers every URL with the document of an app of that name.
func serves(name string, header ...string) func(string, netguard.GetOptions) (*netguard.Response, error) {
	return func(url string, _ netguard.GetOptions) (*netguard.Response, error) {
		h := http.Header{"Content-Type": {"application/json"}}
		for i := 0; i+1 < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &netguard.Response{Status: http.StatusOK, Header: h, Body: []byte(document(url, name, "http://127.0.0.1/cb"))}, nil
	}
}

func fails(err error) func(string, netguard.GetOptions) (*netguard.Response, error) {
	return func(string, netguard.GetOptions) (*netguard.Response, error) { return nil, err }
}

func status(code int) func(string, netguard.GetOptions) (*netguard.Response, error) {
	return func(string, netguard.GetOptions) (*netguard.Response, error) {
		return &netguard.Response{Status: code, Header: http.Header{}}, nil
	}
}

// reader is a Documents with its hosts, a clock, and the pauses it made.
type reader struct {
	*registration.Documents
	*hosts
	db     *sqlstore.Store
	clock  *testkit.Clock
	paused int
}

func newReader(t *testing.T, db *sqlstore.Store, change ...func(*registration.DocumentOptions)) *reader {
	t.Helper()
	r := &reader{hosts: &hosts{answer: serves("Quill")}, db: db, clock: testkit.NewClock()}
	o := registration.DocumentOptions{Clients: db, Documents: db, Audit: db, Tx: db, Fetch: r.hosts, Resources: db, Now: r.clock.Now,
		Pause: func(context.Context, time.Duration) { r.paused++ }}
	for _, fn := range change {
		fn(&o)
	}
	d, err := registration.NewDocuments(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Documents = d
	return r
}

// from is a context of a request from ip.
func from(t *testing.T, ip string) context.Context {
	return audit.WithSource(t.Context(), audit.Source{IP: ip, RequestID: "7Q4M-2KXD"})
}

func (r *reader) get(t *testing.T) *registration.Client {
	t.Helper()
	c, err := r.Resolve(from(t, "192.0.2.1"), docURL)
	if err != nil {
		t.Fatalf("resolve: %v", err)
	}
	return c
}

// refused resolves and returns the problem, "" for a client, "429" for a spent budget.
func (r *reader) refused(t *testing.T, ip, id string) registration.Problem {
	t.Helper()
	_, err := r.Resolve(from(t, ip), id)
	var e *registration.ClientURLError
	var oe *oauth.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Problem
	case errors.As(err, &oe) && oe.Status == http.StatusTooManyRequests && oe.RetryAfter > 0:
		return "429"
	}
	t.Fatalf("resolve: %v", err)
	return ""
}

func eventNames(t *testing.T, db *sqlstore.Store) []string {
	t.Helper()
	list, err := db.ListEvents(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for i := len(list) - 1; i >= 0; i-- {
		names = append(names, list[i].Name)
	}
	return names
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		r := newReader(t, db)
		first := r.clock.Now()
		r.answer = serves("Quill", "ETag", `"1"`, "Last-Modified", "Sat, 21 Nov 2026 12:00:00 GMT", "Cache-Control", "max-age=600")
		c := r.get(t)
		if c.ID != docURL || c.Kind != registration.KindCIMD || c.DisplayName() != "Quill" || !c.CreatedAt.Equal(first) || c.Trusted() || !c.IsPublic() {
			t.Errorf("client %+v", c)
		}
		if r.last.Accept != "application/json" || r.last.MaxBytes != registration.MaxClientDocument || r.last.IfNoneMatch != "" {
			t.Errorf("A33 asked with %+v", r.last)
		}
		if row, err := db.GetClient(t.Context(), docURL); err != nil || cmp.Diff(row, *c) != "" {
			t.Errorf("A33 the row differs: %v %s", err, cmp.Diff(row, *c))
		}
		r.clock.Advance(9 * time.Minute)
		if r.get(t); r.count() != 1 {
			t.Errorf("fresh, but asked %d times", r.count())
		}
		r.clock.Advance(2 * time.Minute)
		r.answer = status(http.StatusNotModified)
		if r.get(t); r.count() != 2 || r.last.IfNoneMatch != `"1"` || r.last.IfModifiedSince == "" {
			t.Errorf("asked %d times, the last with %+v", r.count(), r.last)
		}
		doc, err := db.GetClientDocument(t.Context(), docURL)
		if err != nil || !doc.FetchedAt.Equal(r.clock.Now()) || !doc.FreshUntil.After(r.clock.Now()) || !doc.FirstSeenAt.Equal(first) || doc.Hash == "" {
			t.Errorf("document %+v, %v", doc, err)
		}
		// CI-17: what changed is a change of the row, which a consent is bound to
		r.clock.Advance(2 * time.Hour)
		r.answer = serves("Quill 2")
		changed := r.get(t)
		if changed.DocumentHash == c.DocumentHash || changed.DisplayName() != "Quill 2" || !changed.CreatedAt.Equal(first) || !changed.UpdatedAt.Equal(r.clock.Now()) {
			t.Errorf("CI-17 after a change %+v", changed)
		}
		if d := cmp.Diff([]string{"client.discovered", "client.changed"}, eventNames(t, db)); d != "" {
			t.Errorf("D35 events: %s", d)
		}
	})
}

func TestA33_OneFetchForManyWaiters(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		r := newReader(t, db)
		release := r.hold()
		const waiters = 1000
		var wg sync.WaitGroup
		errs := make(chan error, waiters)
		ctx := from(t, "192.0.2.1")
		leaver, leave := context.WithCancel(ctx)
		wg.Go(func() {
			if _, err := r.Resolve(leaver, docURL); !errors.Is(err, context.Canceled) {
				errs <- fmt.Errorf("who leaves gets %w", err)
			}
		})
		<-r.began
		leave()
		for range waiters {
			wg.Go(func() {
				c, err := r.Resolve(ctx, docURL)
				if err == nil && c.ID != docURL {
					err = fmt.Errorf("got %+v", c)
				}
				errs <- err
			})
		}
		release()
		wg.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := r.count(); n != 1 {
			t.Errorf("%d parallel requests made %d fetches, want 1", waiters, n)
		}
		if d := cmp.Diff([]string{"client.discovered"}, eventNames(t, db)); d != "" {
			t.Errorf("events: %s", d)
		}
	})
}

func TestA33_ProcessesShareDocuments(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		one, two := newReader(t, db), newReader(t, db)
		one.get(t)
		if two.get(t); two.count() != 0 {
			t.Errorf("the second process asked %d times, want 0", two.count())
		}
		// both at once, for a new one: each asks, one makes the client
		releaseOne, releaseTwo := one.hold(), two.hold()
		const id = docURL + "/2"
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i, r := range []*reader{one, two} {
			wg.Go(func() { _, errs[i] = r.Resolve(from(t, "192.0.2.1"), id) })
		}
		<-one.began
		<-two.began
		releaseOne()
		releaseTwo()
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff([]string{"client.discovered", "client.discovered"}, eventNames(t, db)); d != "" {
			t.Errorf("events: %s", d)
		}
		// a failure is known to both, too
		one.answer = status(http.StatusInternalServerError)
		asked := two.count()
		if p := one.refused(t, "192.0.2.1", docURL+"/3"); p != registration.ProblemUnread {
			t.Errorf("a failing host: %q", p)
		}
		if p := two.refused(t, "192.0.2.1", docURL+"/3"); p != registration.ProblemUnread || two.count() != asked {
			t.Errorf("the other process: %q after %d fetches", p, two.count()-asked)
		}
	})
}

// CI-07: what is no good document makes no client; only when to ask again is kept.
func TestCI07_BadDocuments(t *testing.T) {
	t.Parallel()
	body := func(contentType, body string) func(string, netguard.GetOptions) (*netguard.Response, error) {
		return func(string, netguard.GetOptions) (*netguard.Response, error) {
			return &netguard.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {contentType}}, Body: []byte(body)}, nil
		}
	}
	good := document(docURL, "Quill", "http://127.0.0.1/cb")
	for _, tt := range []struct {
		name   string
		answer func(string, netguard.GetOptions) (*netguard.Response, error)
		want   registration.Problem
	}{
		{"+json is JSON", body("application/client+json; charset=utf-8", good), ""},
		{"CI-07 204", status(http.StatusNoContent), registration.ProblemUnread},
		{"CI-07 206", status(http.StatusPartialContent), registration.ProblemUnread},
		{"CI-07 304 that nobody asked for", status(http.StatusNotModified), registration.ProblemUnread},
		{"CI-07 404", status(http.StatusNotFound), registration.ProblemUnread},
		{"CI-07 500", status(http.StatusInternalServerError), registration.ProblemUnread},
		{"CI-05 redirect", status(http.StatusFound), registration.ProblemUnread},
		{"CI-02 refused address", fails(fmt.Errorf("dial: %w", netguard.ErrRefused)), registration.ProblemUnread},
		{"CI-06 too large", fails(fmt.Errorf("get: %w", netguard.ErrTooLarge)), registration.ProblemInvalid},
		{"CI-07 text/html", body("text/html", good), registration.ProblemInvalid},
		{"CI-07 no type", body("", good), registration.ProblemInvalid},
		{"CI-07 image+json", body("image/x+json", good), registration.ProblemInvalid},
		{"CI-07 no JSON", body("application/json", "<html>"), registration.ProblemInvalid},
		{"another client's document", body("application/json", document("https://claude.ai/x", "Claude", "http://127.0.0.1/cb")), registration.ProblemInvalid},
		{"CI-10 http redirect", body("application/json", document(docURL, "Quill", "http://app.example/cb")), registration.ProblemInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, testkit.OpenSQLite(t))
			r.answer = tt.answer
			if got := r.refused(t, "192.0.2.1", docURL); got != tt.want {
				t.Fatalf("problem %q, want %q", got, tt.want)
			}
			if tt.want == "" {
				return
			}
			if list, err := r.db.ListClients(t.Context()); err != nil || len(list) != 0 {
				t.Errorf("clients %v, %v", list, err)
			}
			if got := r.refused(t, "192.0.2.1", docURL); got != tt.want || r.count() != 1 {
				t.Errorf("again: problem %q after %d fetches", got, r.count())
			}
			r.clock.Advance(61 * time.Second)
			r.answer = serves("Quill")
			if got := r.refused(t, "192.0.2.1", docURL); got != "" {
				t.Errorf("a minute later, mended: %q", got)
			}
			want := []string{"client.discovered"}
			if tt.want == registration.ProblemInvalid {
				want = []string{"client.refused", "client.discovered"}
			}
			if d := cmp.Diff(want, eventNames(t, r.db)); d != "" {
				t.Errorf("events: %s", d)
			}
		})
	}
}

// CI-15: what a person, or who sent them, learns of an address that is not
// talked to is what they learn of one where nobody listens.
func TestCI15_OneAnswer(t *testing.T) {
	t.Parallel()
	r := newReader(t, testkit.OpenSQLite(t))
	for i, err := range []error{netguard.ErrRefused, errors.New("connection refused"), errors.New("no such host"), context.DeadlineExceeded} {
		r.answer = fails(err)
		_, got := r.Resolve(from(t, "192.0.2.1"), fmt.Sprintf("%s/%d", docURL, i))
		var e *registration.ClientURLError
		if !errors.As(got, &e) || e.Problem != registration.ProblemUnread || e.Detail != "" || e.Host != "app.example" {
			t.Errorf("%v becomes %+v", err, got)
		}
		if r.paused != i+1 {
			t.Errorf("%v is answered at once", err)
		}
	}
}

func TestA33_LastGoodCopy(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		r := newReader(t, db)
		r.get(t)
		r.answer = status(http.StatusForbidden) // what cloud egress often gets
		r.clock.Advance(2 * time.Hour)
		if r.get(t); r.count() != 2 {
			t.Errorf("asked %d times", r.count())
		}
		if r.get(t); r.count() != 2 {
			t.Errorf("asked again at once: %d times", r.count())
		}
		r.clock.Advance(2 * time.Minute)
		if r.get(t); r.count() != 3 {
			t.Errorf("not asked again after the pause: %d times", r.count())
		}
		// CI-16: but not for ever
		r.clock.Advance(8 * 24 * time.Hour)
		if got := r.refused(t, "192.0.2.1", docURL); got != registration.ProblemUnread {
			t.Errorf("CI-16 after eight days: %q", got)
		}
		r.clock.Advance(2 * time.Hour)
		r.answer = serves("Quill")
		r.get(t)
		if doc, err := db.GetClientDocument(t.Context(), docURL); err != nil || doc.Failures != 0 || doc.Problem != "" || !doc.RetryAt.IsZero() {
			t.Errorf("mended: %+v, %v", doc, err)
		}
	})
}

func TestDocuments_WhatTheOperatorDecidedStays(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		r := newReader(t, db)
		c := *r.get(t)
		c.VerifiedAt = r.clock.Now()
		if err := db.UpdateClient(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		r.clock.Advance(2 * time.Hour)
		r.answer = serves("Quill 2")
		if got := r.get(t); !got.VerifiedAt.Equal(c.VerifiedAt) || got.DisplayName() != "Quill 2" {
			t.Errorf("verified: %+v", got)
		}
		c.BlockedAt = r.clock.Now()
		if err := db.UpdateClient(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		r.clock.Advance(48 * time.Hour)
		if got := r.get(t); got.Enabled() || r.count() != 2 {
			t.Errorf("blocked: enabled %t after %d fetches, want none more", got.Enabled(), r.count())
		}
	})
}

func TestDocuments_Policy(t *testing.T) {
	t.Parallel()
	r := newReader(t, testkit.OpenSQLite(t), func(o *registration.DocumentOptions) {
		o.Policy = registration.HostPolicy{{Host: "*.evil.example", Trust: registration.TrustDeny}, {Host: "app.example", Trust: registration.TrustAsk}}
	})
	if got := r.refused(t, "192.0.2.1", "https://claude.ai.evil.example/x"); got != registration.ProblemDenied || r.count() != 0 {
		t.Errorf("CI-19 denied host: %q after %d fetches", got, r.count())
	}
	if got := r.refused(t, "192.0.2.1", docURL); got != registration.ProblemWaiting {
		t.Errorf("ask first: %q", got)
	}
	c, err := r.db.GetClient(t.Context(), docURL)
	if err != nil {
		t.Fatalf("the operator finds no client to verify: %v", err)
	}
	c.VerifiedAt = r.clock.Now()
	if err := r.db.UpdateClient(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r.get(t)
	if got := r.refused(t, "192.0.2.1", "https://other.example/x"); got != "" {
		t.Errorf("by default: %q", got)
	}
}

func TestCI14_Budgets(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		r := newReader(t, db, func(o *registration.DocumentOptions) {
			o.Budget = registration.FetchBudget{PerSource: 5, PerSite: 8, Total: 12}
		})
		known := r.get(t).ID
		r.answer = status(http.StatusNotFound)
		spray := func(ip, site string, n int) (last registration.Problem) {
			for i := range n {
				last = r.refused(t, ip, fmt.Sprintf("https://h%d.%s/%s/%d", i, site, ip, i))
			}
			return last
		}
		if got := spray("198.51.100.1", "victim.example", 20); got != "429" || r.count() != 1+5 {
			t.Errorf("per source: %q after %d fetches, want 429 after 6", got, r.count())
		}
		if got := spray("198.51.100.2", "victim.example", 20); got != "429" || r.count() != 1+8 {
			t.Errorf("per site: %q after %d fetches, want 429 after 9", got, r.count())
		}
		for i := range 5 {
			spray(fmt.Sprintf("198.51.100.%d", 10+i), "other.example", 3)
		}
		if r.count() != 12 {
			t.Errorf("in all: %d fetches, want 12", r.count())
		}
		if got := r.refused(t, "203.0.113.9", "https://new.example/x"); got != "429" {
			t.Errorf("everything spent: %q", got)
		}
		// known clients are not in the way of that
		r.clock.Advance(50 * time.Minute)
		if got := r.refused(t, "198.51.100.1", known); got != "" {
			t.Errorf("a known client: %q", got)
		}
		r.answer = serves("Quill")
		r.clock.Advance(11 * time.Minute)
		if got := r.refused(t, "198.51.100.1", "https://new.example/x"); got != "" {
			t.Errorf("an hour later: %q", got)
		}
	})
}

func TestD7_NoClientIsAResource(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	r := newReader(t, db)
	if err := db.CreateResource(t.Context(), resource.Resource{Identifier: docURL, Canonical: docURL, Name: "Files", CreatedAt: r.clock.Now(), UpdatedAt: r.clock.Now()}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{docURL, docURL + "/"} {
		if got := r.refused(t, "192.0.2.1", id); got != registration.ProblemInvalid || r.count() != 0 {
			t.Errorf("%s: %q after %d fetches", id, got, r.count())
		}
	}
}

func TestNewDocuments(t *testing.T) {
	db := testkit.OpenSQLite(t)
	if _, err := registration.NewDocuments(registration.DocumentOptions{}); err == nil {
		t.Error("without anything: no error")
	}
	if _, err := registration.NewDocuments(registration.DocumentOptions{Clients: db, Documents: db, Audit: db, Tx: db, Fetch: &hosts{},
		Budget: registration.FetchBudget{PerSite: -1}}); err == nil {
		t.Error("a negative budget: no error")
	}
}
