package authserver_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// A20, DR-13, DR-14 as a property, over HTTP: whatever clients of both kinds,
// people, budgets and time do, in whatever order, no client is removed while it
// holds a live grant, and each live grant can be used.
func TestA20_DR14_RandomHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
				w := newWorld(t, db, []string{"quill.example"}, func(c *config.Config) {
					// less than a connection may be idle, so that only the live grant keeps a client
					c.RegistrationPerHour, c.ClientIdleExpiry = 6, 10*24*time.Hour
				})
				h := &clientHistory{world: w, seed: seed, rand: rand.New(rand.NewPCG(seed, 13)), apps: map[string]app{}, tokens: map[string]heldToken{}}
				h.run(60)
			})
		})
	}
}

// clientHistory is a random history: the clients that were made and the refresh
// tokens that they hold, by name.
type clientHistory struct {
	*world
	seed   uint64
	rand   *rand.Rand
	apps   map[string]app
	tokens map[string]heldToken
	made   int
	full   int // registrations that a budget refused
	gone   int // clients that were removed
}

type heldToken struct{ client, token, grantID string }

func (h *clientHistory) run(steps int) {
	for range steps {
		switch h.rand.IntN(12) {
		case 0, 1, 2:
			h.add()
		case 3:
			h.flood()
		case 4, 5, 6:
			h.approve()
		case 7, 8:
			h.use()
		case 9:
			h.revoke()
		default:
			h.Clock.Advance(time.Duration(1+h.rand.IntN(25*24)) * time.Hour)
			h.collect()
		}
		h.check()
	}
	h.Clock.Advance(400 * 24 * time.Hour)
	h.collect()
	h.check()
	if list, err := h.DB.ListClients(h.ctx); err != nil || len(list) != 0 || h.gone == 0 || h.full == 0 {
		h.t.Errorf("seed %d: a year later %d clients are left, %d were removed and %d refused; want none left and some of both: %v",
			h.seed, len(list), h.gone, h.full, err)
	}
}

// add makes a client of one kind or the other.
func (h *clientHistory) add() {
	h.made++
	name := fmt.Sprintf("c%02d", h.made)
	if h.rand.IntN(2) == 0 {
		h.apps[name] = h.site.publish("/"+name+".json", nil, loopbackRedirect)
		return
	}
	status, doc := h.registerRaw("application/json", map[string]any{"redirect_uris": []string{appRedirect}, "token_endpoint_auth_method": "none", "client_name": name})
	switch status {
	case http.StatusCreated:
		h.apps[name] = app{id: doc["client_id"].(string), method: "none", redirect: appRedirect}
	case http.StatusTooManyRequests:
		h.full++
	default:
		h.t.Fatalf("seed %d: register: %d %v", h.seed, status, doc)
	}
}

// flood registers until the budget is spent.
func (h *clientHistory) flood() {
	for range 7 {
		h.made++
		status, _ := h.registerRaw("application/json", map[string]any{"redirect_uris": []string{appRedirect}, "token_endpoint_auth_method": "none",
			"client_name": fmt.Sprint("Flood ", h.made)})
		if status == http.StatusTooManyRequests {
			h.full++
		}
	}
}

// approve lets the person allow a client that is there; one of a document always is.
func (h *clientHistory) approve() {
	name, ok := h.pick(slices.Sorted(maps.Keys(h.apps)))
	if !ok {
		return
	}
	a := h.apps[name]
	if _, err := h.DB.GetClient(h.ctx, a.id); err != nil && a.redirect == appRedirect {
		delete(h.apps, name)
		return
	}
	h.made++
	got := h.connect(a, nil)
	id, _ := claims(h.t, got.body.AccessToken)["grant_id"].(string)
	h.tokens[fmt.Sprintf("t%03d", h.made)] = heldToken{client: name, token: got.body.RefreshToken, grantID: id}
}

// use refreshes: it works when the grant is live, and only then.
func (h *clientHistory) use() {
	name, ok := h.pick(slices.Sorted(maps.Keys(h.tokens)))
	if !ok {
		return
	}
	held := h.tokens[name]
	live := slices.ContainsFunc(h.live(), func(g grant.Grant) bool { return g.ID == held.grantID })
	got := h.refresh(h.apps[held.client], held.token, nil)
	if (got.status == http.StatusOK) != live {
		h.t.Fatalf("seed %d: refresh of a grant that is live: %t is answered %d %s", h.seed, live, got.status, got.raw)
	}
	if delete(h.tokens, name); live {
		held.token = got.body.RefreshToken
		h.tokens[name] = held
	}
}

func (h *clientHistory) revoke() {
	if name, ok := h.pick(slices.Sorted(maps.Keys(h.tokens))); ok {
		held := h.tokens[name]
		h.post("/revoke", h.apps[held.client], values("token", held.token))
		delete(h.tokens, name)
	}
}

func (h *clientHistory) pick(names []string) (string, bool) {
	if len(names) == 0 {
		return "", false
	}
	return names[h.rand.IntN(len(names))], true
}

// collect does what serve does each minute.
func (h *clientHistory) collect() {
	h.t.Helper()
	if err := h.DB.Collect(h.ctx, h.Clock.Now()); err != nil {
		h.t.Fatal(err)
	}
	n, err := h.App.Idle.Collect(h.ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	h.gone += n
}

// check is the property.
func (h *clientHistory) check() {
	h.t.Helper()
	for _, g := range h.live() {
		if _, err := h.DB.GetClient(h.ctx, g.ClientID); err != nil {
			h.t.Fatalf("seed %d: client %s of a live grant: %v", h.seed, g.ClientID, err)
		}
	}
}
