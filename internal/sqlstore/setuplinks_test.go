package sqlstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func putLink(t *testing.T, db *sqlstore.Store, hash string) {
	t.Helper()
	made, err := db.CreateSetupLink(t.Context(), login.SetupLink{TokenHash: hash, CreatedAt: noon(), ExpiresAt: noon().Add(time.Hour)})
	if err != nil || !made {
		t.Fatalf("CreateSetupLink = %v, %v; want true", made, err)
	}
}

func TestSetupLinks(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx := t.Context()
		putLink(t, db, "one")
		putLink(t, db, "two")
		for _, tt := range []struct {
			name, hash string
			at         time.Time
			live       bool
		}{
			{"good", "one", noon(), true},
			{"last moment", "one", noon().Add(time.Hour - time.Millisecond), true},
			{"expired", "one", noon().Add(time.Hour), false},
			{"unknown", "three", noon(), false},
		} {
			if live, err := db.SetupLinkLive(ctx, tt.hash, tt.at); live != tt.live || err != nil {
				t.Errorf("%s: SetupLinkLive = %v, %v; want %v", tt.name, live, err, tt.live)
			}
			if tt.live {
				continue
			}
			if used, err := db.UseSetupLink(ctx, tt.hash, tt.at); used || err != nil {
				t.Errorf("%s: UseSetupLink = %v, %v; want false", tt.name, used, err)
			}
		}
		if used, err := db.UseSetupLink(ctx, "one", noon()); !used || err != nil {
			t.Fatalf("UseSetupLink = %v, %v; want true", used, err)
		}
		for _, hash := range []string{"one", "two"} {
			if live, err := db.SetupLinkLive(ctx, hash, noon()); live || err != nil {
				t.Errorf("SetupLinkLive(%s) after a use = %v, %v; want false", hash, live, err)
			}
			if used, err := db.UseSetupLink(ctx, hash, noon()); used || err != nil {
				t.Errorf("UseSetupLink(%s) after a use = %v, %v; want false", hash, used, err)
			}
		}
	})
}

// SL-17: with an operator, no link can be made and none works.
func TestSL17_OperatorEndsSetupLinks(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx := t.Context()
		putLink(t, db, "one")
		plain := login.User{ID: "p", EmailKey: "p", CreatedAt: noon(), UpdatedAt: noon()}
		if err := db.CreateUser(ctx, plain); err != nil {
			t.Fatal(err)
		}
		if has, err := db.HasOperator(ctx); has || err != nil {
			t.Fatalf("HasOperator without one = %v, %v; want false", has, err)
		}
		if live, err := db.SetupLinkLive(ctx, "one", noon()); !live || err != nil {
			t.Errorf("SetupLinkLive beside an ordinary account = %v, %v; want true", live, err)
		}
		operator := login.User{ID: "o", EmailKey: "o", Operator: true, CreatedAt: noon(), UpdatedAt: noon()}
		if err := db.CreateUser(ctx, operator); err != nil {
			t.Fatal(err)
		}
		if has, err := db.HasOperator(ctx); !has || err != nil {
			t.Errorf("HasOperator = %v, %v; want true", has, err)
		}
		if live, err := db.SetupLinkLive(ctx, "one", noon()); live || err != nil {
			t.Errorf("SetupLinkLive beside an operator = %v, %v; want false", live, err)
		}
		if used, err := db.UseSetupLink(ctx, "one", noon()); used || err != nil {
			t.Errorf("UseSetupLink beside an operator = %v, %v; want false", used, err)
		}
		made, err := db.CreateSetupLink(ctx, login.SetupLink{TokenHash: "two", CreatedAt: noon(), ExpiresAt: noon().Add(time.Hour)})
		if made || err != nil {
			t.Errorf("CreateSetupLink beside an operator = %v, %v; want false", made, err)
		}
		if err := db.DeleteUser(ctx, "o"); err != nil {
			t.Fatal(err)
		}
		if err := db.EndSetupLinks(ctx, noon()); err != nil {
			t.Fatal(err)
		}
		if live, err := db.SetupLinkLive(ctx, "one", noon()); live || err != nil {
			t.Errorf("SetupLinkLive after EndSetupLinks = %v, %v; want false", live, err)
		}
	})
}

// SL-17: two servers that race one set-up link, or two, make one operator.
func TestSL17_SetupLinkRace(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{"sqlite": testkit.SQLitePath, "postgres": testkit.PostgresURL} {
		for _, links := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d links", name, links), func(t *testing.T) {
				t.Parallel()
				raceSetupLinks(t, url(t), links)
			})
		}
	}
}

func raceSetupLinks(t *testing.T, url string, links int) {
	t.Helper()
	const racers = 8
	var servers []*sqlstore.Store
	for range 2 {
		db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url, MaxConns: 4})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		servers = append(servers, db)
	}
	for i := range links {
		putLink(t, servers[0], fmt.Sprint("link", i))
	}
	var wg sync.WaitGroup
	won := make(chan string, racers)
	for i := range racers {
		wg.Go(func() {
			if useLink(t, servers[i%2], fmt.Sprint("link", i%links), fmt.Sprint("user", i)) {
				won <- fmt.Sprint("user", i)
			}
		})
	}
	wg.Wait()
	users, err := servers[1].ListUsers(t.Context())
	if err != nil || len(users) != 1 || len(won) != 1 || users[0].ID != <-won {
		t.Errorf("after the race: accounts %v, %d winners, %v; want the winner's account alone", users, len(won), err)
	}
}

func useLink(t *testing.T, db *sqlstore.Store, link, user string) (won bool) {
	err := db.InTx(t.Context(), func(ctx context.Context) error {
		var err error
		if won, err = db.UseSetupLink(ctx, link, noon()); err != nil || !won {
			return err
		}
		return db.CreateUser(ctx, login.User{ID: user, EmailKey: user, Operator: true, CreatedAt: noon(), UpdatedAt: noon()})
	})
	if err != nil {
		t.Errorf("use set-up link: %v", err)
	}
	return won && err == nil
}
