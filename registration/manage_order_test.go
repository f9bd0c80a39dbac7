package registration_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// A client that removes itself takes rows in the order that everybody keeps:
// client, consent, grant. Else it and a person who disconnects it would wait for
// one another.
func TestRFC7592_RemovalTakesRowsInOrder(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	db := testkit.OpenSQLite(t, func(o *sqlstore.Options) {
		o.OnStatement = func(_ context.Context, q string) {
			mu.Lock()
			defer mu.Unlock()
			for _, verb := range []string{"UPDATE clients", "DELETE FROM consents", "UPDATE grants", "DELETE FROM clients"} {
				if strings.HasPrefix(strings.TrimSpace(q), verb) {
					order = append(order, verb)
				}
			}
		}
	})
	m := newManaged(t, db, atlas, manage)
	mu.Lock()
	order = nil
	mu.Unlock()
	if w := m.do("DELETE", m.path(), m.token, ""); w.Code != http.StatusNoContent {
		t.Fatalf("delete: %d %s", w.Code, w.Body)
	}
	if got, want := strings.Join(order, ", "), "UPDATE clients, DELETE FROM consents, UPDATE grants, DELETE FROM clients"; got != want {
		t.Errorf("rows were taken in the order %q, want %q", got, want)
	}
}
