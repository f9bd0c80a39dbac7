package registration_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

const day = 24 * time.Hour

// garden is a database whose idle clients are collected.
type garden struct {
	*testing.T
	db  *sqlstore.Store
	now time.Time
}

func newGarden(t *testing.T, db *sqlstore.Store) *garden {
	t.Helper()
	g := &garden{T: t, db: db, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	err := db.CreateUser(t.Context(), login.User{ID: "ada", Email: "ada@example.com", EmailKey: "ada@example.com", CreatedAt: g.now, UpdatedAt: g.now})
	if err != nil && !errors.Is(err, store.ErrExists) {
		t.Fatal(err)
	}
	return g
}

func (g *garden) idle() *registration.Idle {
	return &registration.Idle{Clients: g.db, Consents: g.db, Audit: g.db, Tx: g.db, Life: 90 * day, Now: func() time.Time { return g.now }}
}

func (g *garden) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

func (g *garden) client(id string, change func(c *registration.Client)) {
	g.Helper()
	c := registration.Client{ID: id, Kind: registration.KindDynamic, Source: "192.0.2.1", CreatedAt: g.now, UpdatedAt: g.now}
	if change != nil {
		change(&c)
	}
	g.must(g.db.CreateClient(g.Context(), c))
}

// grant makes a grant redeemed now that must be refreshed within idle.
func (g *garden) grant(id, client string, idle, absolute time.Duration) {
	g.Helper()
	g.must(g.db.CreateGrant(g.Context(), grant.Grant{ID: id, ClientID: client, Subject: "ada", Resource: "https://mcp.example", Salt: []byte("s"),
		Generation: 1, CodeExpiresAt: g.now, AdvancedAt: g.now, RefreshExpiresAt: g.now.Add(idle), ExpiresAt: g.now.Add(absolute), CreatedAt: g.now}))
	g.must(g.db.TouchClient(g.Context(), client, g.now))
}

// refresh redeems the grant's refresh token now.
func (g *garden) refresh(id string, idle time.Duration) {
	g.Helper()
	row, err := g.db.GetGrant(g.Context(), id)
	g.must(err)
	moved, err := g.db.AdvanceGrant(g.Context(), grant.Advance{ID: id, From: row.Generation, To: row.Generation + 1, Now: g.now,
		RefreshExpiresAt: g.now.Add(idle), Unregistered: true})
	if err != nil || !moved {
		g.Fatalf("AdvanceGrant = %t, %v", moved, err)
	}
}

// collect does what serve does each minute.
func (g *garden) collect() int {
	g.Helper()
	g.must(g.db.Collect(g.Context(), g.now))
	n, err := g.idle().Collect(g.Context())
	g.must(err)
	return n
}

func (g *garden) ids() []string {
	g.Helper()
	list, err := g.db.ListClients(g.Context())
	g.must(err)
	var ids []string
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestA20_IdleExpiry(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		g := newGarden(t, db)
		g.client("a-unused", nil)
		g.client("b-used", nil)
		g.client("c-live", nil)
		g.client("d-operator", func(c *registration.Client) { c.Kind = registration.KindOperator })
		g.client("f-verified", func(c *registration.Client) { c.VerifiedAt = g.now })
		g.client("g-blocked", func(c *registration.Client) { c.BlockedAt = g.now })
		g.client("h-changed", nil)
		g.client("i-ended", nil)
		g.grant("live", "c-live", 365*day, 365*day)
		g.grant("ended", "i-ended", 365*day, 365*day)
		_, err := db.EndGrants(t.Context(), grant.Filter{ClientID: "i-ended"}, grant.ReasonDisconnected, g.now)
		g.must(err)
		g.now = g.now.Add(day)
		g.must(db.TouchClient(t.Context(), "b-used", g.now))
		changed, err := db.GetClient(t.Context(), "h-changed")
		g.must(err)
		changed.UpdatedAt = g.now
		g.must(db.UpdateClient(t.Context(), changed))

		start := g.now.Add(-day)
		ends, err := g.idle().Expiries(t.Context())
		want := map[string]time.Time{"a-unused": start.Add(90 * day), "b-used": g.now.Add(90 * day), "h-changed": g.now.Add(90 * day), "i-ended": start.Add(90 * day)}
		if err != nil || !cmp.Equal(ends, want) {
			t.Errorf("Expiries: %v, %s", err, cmp.Diff(want, ends))
		}

		g.now = start.Add(90*day - time.Millisecond)
		if n := g.collect(); n != 0 {
			t.Errorf("a moment before: %d removed", n)
		}
		g.now = start.Add(90 * day)
		if n := g.collect(); n != 2 {
			t.Errorf("after 90 days: %d removed, want 2", n)
		}
		if want := []string{"b-used", "c-live", "d-operator", "f-verified", "g-blocked", "h-changed"}; !cmp.Equal(g.ids(), want) {
			t.Errorf("left: %s", cmp.Diff(want, g.ids()))
		}
		events, err := db.ListEvents(t.Context(), 10)
		if err != nil || len(events) != 2 || events[0].Name != "client.expired" || events[0].Actor != "system" {
			t.Errorf("D35: events %+v, %v", events, err)
		}
		g.now = g.now.Add(10 * 365 * day)
		g.collect()
		if want := []string{"d-operator", "f-verified", "g-blocked"}; !cmp.Equal(g.ids(), want) {
			t.Errorf("ten years later: %s", cmp.Diff(want, g.ids()))
		}
	})
}

func TestA20_IdleExpiryOff(t *testing.T) {
	t.Parallel()
	g := newGarden(t, testkit.OpenSQLite(t))
	g.client("a", nil)
	g.now = g.now.Add(10 * 365 * day)
	idle := g.idle()
	idle.Life = 0
	if n, err := idle.Collect(t.Context()); n != 0 || err != nil {
		t.Errorf("Collect = %d, %v", n, err)
	}
	if ends, err := idle.Expiries(t.Context()); len(ends) != 0 || err != nil {
		t.Errorf("Expiries = %v, %v", ends, err)
	}
}

func TestA20_IdleExpiryInBatches(t *testing.T) {
	t.Parallel()
	g := newGarden(t, testkit.OpenSQLite(t))
	for i := range 450 {
		g.client(fmt.Sprint("c", i), nil)
	}
	g.now = g.now.Add(91 * day)
	if n := g.collect(); n != 450 || len(g.ids()) != 0 {
		t.Errorf("%d removed, %d left", n, len(g.ids()))
	}
}

// The last refresh counts as use, also after the grant that tells of it is gone.
func TestA20_LastRefreshCounts(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		g := newGarden(t, db)
		g.client("c", nil)
		g.grant("g", "c", 30*day, 100*day)
		for range 9 {
			g.now = g.now.Add(11 * day)
			g.refresh("g", 30*day)
		}
		last := g.now // the last use but for the code was 99 days ago
		g.now = last.Add(10 * day)
		g.collect()
		if list, err := db.ListGrants(t.Context(), grant.Filter{ClientID: "c"}); err != nil || len(list) != 0 {
			t.Fatalf("the grant's row should be gone: %v, %v", list, err)
		}
		g.now = last.Add(90*day - time.Millisecond)
		if g.collect(); len(g.ids()) != 1 {
			t.Error("removed before 90 days after the last refresh")
		}
		g.now = last.Add(90 * day)
		if g.collect(); len(g.ids()) != 0 {
			t.Errorf("90 days after the last refresh: %v", g.ids())
		}
	})
}

// A20 as a property: whatever happens to clients, in whatever order, none is
// removed that holds a live grant or was used within 90 days, and all others are.
func TestA20_RandomHistories(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		for seed := range uint64(3) {
			newHistory(t, db, seed).run(120)
		}
	})
}

// history is a random history and a model of what must come of it.
type history struct {
	*garden
	seed    uint64
	rand    *rand.Rand
	lastUse map[string]time.Time // of clients that are there
	grants  map[string]*modelGrant
	made    int
}

type modelGrant struct {
	client            string
	refresh, absolute time.Time
	ended             bool
}

func newHistory(t *testing.T, db *sqlstore.Store, seed uint64) *history {
	h := &history{garden: newGarden(t, db), seed: seed, rand: rand.New(rand.NewPCG(seed, 20)), lastUse: map[string]time.Time{}, grants: map[string]*modelGrant{}}
	h.now = h.now.AddDate(10*int(seed), 0, 0) // later than what the history before left
	return h
}

func (h *history) run(steps int) {
	for range steps {
		h.now = h.now.Add(time.Duration(h.rand.IntN(int(12 * day))))
		switch h.rand.IntN(10) {
		case 0, 1, 2:
			h.made++
			id := fmt.Sprintf("s%d-c%d", h.seed, h.made)
			h.client(id, nil)
			h.lastUse[id] = h.now
		case 3, 4, 5:
			h.approve()
		case 6, 7:
			h.refresh()
		case 8:
			h.end()
		case 9:
			h.check()
		}
	}
	h.check()
	h.now = h.now.Add(400 * day)
	h.check()
}

func (h *history) approve() {
	for _, id := range slices.Sorted(maps.Keys(h.lastUse)) {
		if h.rand.IntN(3) > 0 {
			continue
		}
		h.made++
		g := &modelGrant{client: id, refresh: h.now.Add(30 * day), absolute: h.now.Add(time.Duration(40+h.rand.IntN(300)) * day)}
		name := fmt.Sprintf("s%d-g%d", h.seed, h.made)
		h.grant(name, id, 30*day, g.absolute.Sub(h.now))
		h.grants[name], h.lastUse[id] = g, h.now
		return
	}
}

func (h *history) live(g *modelGrant) bool {
	return !g.ended && h.now.Before(g.refresh) && h.now.Before(g.absolute)
}

func (h *history) refresh() {
	for _, name := range slices.Sorted(maps.Keys(h.grants)) {
		g := h.grants[name]
		if !h.live(g) || h.rand.IntN(3) > 0 {
			continue
		}
		g.refresh = h.now.Add(30 * day)
		h.garden.refresh(name, 30*day)
		h.lastUse[g.client] = h.now
		return
	}
}

func (h *history) end() {
	for _, name := range slices.Sorted(maps.Keys(h.grants)) {
		g := h.grants[name]
		if !h.live(g) || h.rand.IntN(3) > 0 {
			continue
		}
		g.ended = true
		_, err := h.db.EndGrant(h.Context(), name, grant.ReasonRevoked, h.now)
		h.must(err)
		return
	}
}

// check collects and compares with the model.
func (h *history) check() {
	h.Helper()
	h.collect()
	held := map[string]bool{}
	for _, g := range h.grants {
		if h.live(g) {
			held[g.client] = true
		}
	}
	there := map[string]bool{}
	for _, id := range h.ids() {
		there[id] = true
	}
	for id, used := range h.lastUse {
		keep := held[id] || h.now.Sub(used) < 90*day
		if there[id] != keep {
			h.Fatalf("seed %d: client %s last used %s ago, live grant: %t; there: %t", h.seed, id, h.now.Sub(used), held[id], there[id])
		}
		if !keep {
			delete(h.lastUse, id)
		}
	}
}
