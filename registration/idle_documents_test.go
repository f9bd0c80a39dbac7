package registration_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// document makes a client of a metadata document that was read now.
func (g *garden) document(id string, change func(c *registration.Client)) {
	g.Helper()
	g.client(id, func(c *registration.Client) {
		c.Kind = registration.KindCIMD
		if change != nil {
			change(c)
		}
	})
	g.must(g.db.PutClientDocument(g.Context(), registration.ClientDocument{ClientID: id, Hash: "h", FirstSeenAt: g.now, FetchedAt: g.now, TriedAt: g.now}))
}

// documents returns the client_ids whose documents are known.
func (g *garden) documents() []string {
	g.Helper()
	list, err := g.db.ListClientDocuments(g.Context())
	g.must(err)
	ids := []string{}
	for _, d := range list {
		ids = append(ids, d.ClientID)
	}
	return ids
}

// A20 for clients of metadata documents: they are there again as soon as somebody
// names them, so they need not pile up; what the operator decided would be lost,
// so then they stay.
func TestA20_IdleDocuments(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		g := newGarden(t, db)
		const at = "https://quill.example/"
		g.document(at+"a-never", nil)
		g.document(at+"b-used", nil)
		g.document(at+"c-live", nil)
		g.document(at+"d-verified", func(c *registration.Client) { c.VerifiedAt = g.now })
		g.document(at+"e-blocked", func(c *registration.Client) { c.BlockedAt = g.now })
		g.document(at+"f-disabled", func(c *registration.Client) { c.DisabledAt = g.now })
		g.document(at+"g-limited", func(c *registration.Client) { c.Resources = []string{"https://mcp.example"} })
		g.document(at+"h-limited-and-used", func(c *registration.Client) { c.Resources = []string{"https://mcp.example"} })
		g.must(db.TouchClient(t.Context(), at+"b-used", g.now))
		g.must(db.TouchClient(t.Context(), at+"h-limited-and-used", g.now))
		g.grant("live", at+"c-live", 365*day, 365*day)
		start := g.now

		ends, err := g.idle().Expiries(t.Context())
		if want := map[string]time.Time{at + "b-used": start.Add(90 * day)}; err != nil || !cmp.Equal(ends, want) {
			t.Errorf("Expiries: %v, %s", err, cmp.Diff(want, ends))
		}
		left := func(when string, at time.Time, names ...string) {
			t.Helper()
			want := make([]string, len(names))
			g.now = at
			g.collect()
			g.collect() // the document of a client that is gone goes in the next turn
			for i, name := range names {
				want[i] = "https://quill.example/" + name
			}
			if !cmp.Equal(g.ids(), want) || !cmp.Equal(g.documents(), want) {
				t.Errorf("%s: clients %s documents %s", when, cmp.Diff(want, g.ids()), cmp.Diff(want, g.documents()))
			}
		}
		decided := []string{"d-verified", "e-blocked", "f-disabled", "g-limited", "h-limited-and-used"}
		left("six days", start.Add(6*day), append([]string{"a-never", "b-used", "c-live"}, decided...)...)
		if d := cmp.Diff([]string(nil), eventNames(t, db), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("D35: events %s", d)
		}
		left("a week", start.Add(7*day), append([]string{"b-used", "c-live"}, decided...)...)
		list, err := db.ListEvents(t.Context(), 10)
		if err != nil || len(list) != 1 || list[0].Name != "client.expired" || list[0].ClientID != at+"a-never" || list[0].Actor != "system" {
			t.Errorf("D35 of what nobody ever approved: %+v, %v", list, err)
		}
		left("just before 90 days", start.Add(90*day-time.Millisecond), append([]string{"b-used", "c-live"}, decided...)...)
		g.now = start.Add(90 * day)
		if n := g.collect(); n != 1 {
			t.Errorf("90 days: %d removed, want 1", n)
		}
		left("90 days", start.Add(90*day), append([]string{"c-live"}, decided...)...)
		_, err = db.EndGrants(t.Context(), grant.Filter{ClientID: at + "c-live"}, grant.ReasonDisconnected, g.now)
		g.must(err)
		g.collect()
		left("the connection ended", start.Add(90*day), decided...)
		left("ten years later", start.Add(3650*day), decided...)
		if d := cmp.Diff([]string{"client.expired", "client.expired", "client.expired"}, eventNames(t, db)); d != "" {
			t.Errorf("D35: events %s", d)
		}
	})
}

// A document that is read while the client is removed makes it again, with the
// time it was first seen.
func TestA20_RemovedDocumentComesBack(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		r := newReader(t, db)
		first := r.get(t)
		g := &garden{T: t, db: db, now: r.clock.Now()}
		g.must(db.TouchClient(t.Context(), docURL, g.now))
		r.clock.Advance(91 * day)
		g.now = r.clock.Now()
		if n, err := g.idle().Collect(t.Context()); n != 1 || err != nil {
			t.Fatalf("removed %d, %v", n, err)
		}
		again := r.get(t)
		if !again.CreatedAt.Equal(r.clock.Now()) || again.DocumentHash != first.DocumentHash || r.count() != 2 || r.last.IfNoneMatch != "" {
			t.Errorf("again %+v after %d fetches, the last %+v", again, r.count(), r.last)
		}
	})
}

// What nobody ever approved goes although clients are kept for ever, and where the
// event cannot be written nothing goes (D35).
func TestA20_UnusedDocuments(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		g := newGarden(t, db)
		const n = 250 // more than a batch
		for i := range n {
			g.document(fmt.Sprintf("https://h%d.example/client.json", i), nil)
		}
		g.client("self-registered", nil)
		g.now = g.now.Add(7 * day)
		idle := g.idle()
		idle.Life, idle.Audit = 0, brokenAudit{db}
		if removed, err := idle.Collect(t.Context()); removed != 0 || err == nil || len(g.ids()) != n+1 {
			t.Errorf("without events: %d removed, %d left, %v", removed, len(g.ids()), err)
		}
		idle.Audit = db
		if removed, err := idle.Collect(t.Context()); removed != n || err != nil || !cmp.Equal(g.ids(), []string{"self-registered"}) {
			t.Errorf("%d removed, left %q, %v", removed, g.ids(), err)
		}
		list, err := db.ListEvents(t.Context(), n+1)
		if err != nil || len(list) != n {
			t.Errorf("D35: %d events, want %d (%v)", len(list), n, err)
		}
	})
}

// brokenAudit cannot append.
type brokenAudit struct{ audit.Store }

func (brokenAudit) Append(context.Context, audit.Event) error {
	return errors.New("no room for events")
}
