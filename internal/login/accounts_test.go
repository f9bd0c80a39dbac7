package login_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/store"
)

func (w *world) addGrant(id, subject string, generation int) {
	w.t.Helper()
	now := w.clock.Now()
	g := grant.Grant{ID: id, ClientID: "c", Subject: subject, Resource: "https://mcp.example", Salt: []byte("salt"),
		Generation: generation, CodeExpiresAt: now.Add(time.Minute), ExpiresAt: now.Add(24 * time.Hour), CreatedAt: now}
	if generation > 0 {
		g.AdvancedAt = now
	}
	if err := w.db.CreateGrant(w.t.Context(), g); err != nil {
		w.t.Fatal(err)
	}
}

func TestSL10_AccountChangesEndEverything(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(ctx context.Context, a *login.Accounts) (login.User, error)
		reason string
		event  string
		signIn int // status of a sign-in with the old password afterwards
	}{
		{"SL-10 set-password", func(ctx context.Context, a *login.Accounts) (login.User, error) {
			return a.SetPassword(ctx, ada, "another long password")
		}, grant.ReasonPassword, "user.password_set", 422},
		{"RT-11 CO-07 disable", func(ctx context.Context, a *login.Accounts) (login.User, error) {
			return a.Disable(ctx, ada, false)
		}, grant.ReasonUserDisabled, "user.disabled", 422},
		{"SL-10 remove", func(ctx context.Context, a *login.Accounts) (login.User, error) {
			return a.Remove(ctx, ada, false)
		}, grant.ReasonUserDisabled, "user.removed", 422},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, worldOption{}, func(t *testing.T, w *world) {
				ctx := t.Context()
				u, other := w.addUser(ada, false), w.addUser("eve@fernhill.example", false)
				b, others := w.browser(), w.browser()
				wantRedirect(t, b.signIn("", ada, password), "/account")
				wantRedirect(t, others.signIn("", "eve@fernhill.example", password), "/account")
				w.addGrant("code", u.ID, 0)
				w.addGrant("refresh", u.ID, 3)
				w.addGrant("other", other.ID, 3)
				for _, subject := range []string{u.ID, other.ID} {
					if err := w.db.PutConsent(ctx, consent.Consent{Subject: subject, ClientID: "c", RedirectURI: "r", Resource: "https://mcp.example",
						CreatedAt: w.clock.Now(), UpdatedAt: w.clock.Now()}); err != nil {
						t.Fatal(err)
					}
				}
				if got, err := tt.change(ctx, w.accounts); err != nil || got.ID != u.ID {
					t.Fatalf("change = %+v, %v", got, err)
				}
				if s := b.session(); s != nil {
					t.Errorf("session = %+v, want it ended", s)
				}
				for id, reason := range map[string]string{"code": tt.reason, "refresh": tt.reason, "other": ""} {
					g, err := w.db.GetGrant(ctx, id)
					if err != nil || g.EndReason != reason || g.EndedAt.IsZero() != (reason == "") {
						t.Errorf("grant %s: ended %v, reason %q, %v; want reason %q", id, g.EndedAt, g.EndReason, err, reason)
					}
				}
				if has, err := w.db.HasConsent(ctx, u.ID, "c", "r"); has || err != nil {
					t.Errorf("HasConsent = %v, %v; want it forgotten", has, err)
				}
				if has, err := w.db.HasConsent(ctx, other.ID, "c", "r"); !has || err != nil {
					t.Errorf("HasConsent of somebody else = %v, %v; want it kept", has, err)
				}
				if !others.session().SignedIn() {
					t.Error("somebody else was signed out too")
				}
				if rec := w.browser().signIn("", ada, password); rec.Code != tt.signIn {
					t.Errorf("sign-in with the old password = %d, want %d", rec.Code, tt.signIn)
				}
				events := w.events()
				if count(events, tt.event) != 1 || count(events, "grant.ended") != 1 {
					t.Errorf("LG-07: events %v; want one %s and one grant.ended", events, tt.event)
				}
			})
		})
	}
}

func TestAccountsEnable(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		u := w.addUser(ada, false)
		for _, change := range []func() (login.User, error){
			func() (login.User, error) { return w.accounts.Disable(t.Context(), u.ID, false) },
			func() (login.User, error) { return w.accounts.Enable(t.Context(), "ADA@fernhill.example") },
		} {
			if _, err := change(); err != nil {
				t.Fatal(err)
			}
		}
		wantRedirect(t, w.browser().signIn("", ada, password), "/account")
	})
}

func TestAccountsAdd(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		for _, tt := range []struct {
			name string
			user login.NewUser
			want []string
		}{
			{"taken, other case", login.NewUser{Email: "ADA@fernhill.example", Password: password}, []string{"exists already"}},
			{"all wrong", login.NewUser{Email: "nobody", Name: "a\nb", Password: "short"}, []string{"name@example.com", "one line", "12 characters"}},
		} {
			before := w.events()
			_, err := w.accounts.Add(t.Context(), tt.user)
			var m *login.Mistake
			if !errors.As(err, &m) {
				t.Errorf("%s: Add = %v, want a *Mistake", tt.name, err)
				continue
			}
			for _, words := range tt.want {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%s: Add = %v, want it to say %q", tt.name, err, words)
				}
			}
			if n, err := w.db.CountUsers(t.Context()); n != 1 || err != nil || len(w.events()) != len(before) {
				t.Errorf("%s: %d accounts, %v; want nothing written", tt.name, n, err)
			}
		}
	})
}

func TestAccountsUpdate(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		u := w.addUser(ada, false)
		w.addUser("eve@fernhill.example", true)
		w.clock.advance(time.Minute)
		str := func(s string) *string { return &s }
		yes, no := true, false
		got, err := w.accounts.Update(t.Context(), ada, login.Change{Email: str("Countess@fernhill.example"), Name: str("Countess"), Operator: &yes})
		if err != nil || got.ID != u.ID || got.EmailKey != "countess@fernhill.example" || got.Name != "Countess" || !got.Operator ||
			!got.UpdatedAt.Equal(w.clock.Now()) || got.PasswordHash != u.PasswordHash {
			t.Errorf("Update = %+v, %v", got, err)
		}
		wantRedirect(t, w.browser().signIn("", "countess@fernhill.example", password), "/account")
		for name, tt := range map[string]struct {
			who    string
			change login.Change
			want   error
		}{
			"unknown":    {"nobody@fernhill.example", login.Change{}, store.ErrNotFound},
			"unknown id": {"u_0", login.Change{}, store.ErrNotFound},
			"taken":      {u.ID, login.Change{Email: str("EVE@fernhill.example")}, store.ErrExists},
		} {
			if _, err := w.accounts.Update(t.Context(), tt.who, tt.change); !errors.Is(err, tt.want) {
				t.Errorf("%s: Update = %v, want %v", name, err, tt.want)
			}
		}
		var m *login.Mistake
		if _, err := w.accounts.Update(t.Context(), u.ID, login.Change{Email: str("nothing")}); !errors.As(err, &m) {
			t.Errorf("Update to a bad address = %v, want a *Mistake", err)
		}
		if _, err := w.accounts.Update(t.Context(), u.ID, login.Change{Operator: &no}); err != nil {
			t.Errorf("taking one of two operators' role: %v", err)
		}
	})
}

func TestAccountsLastOperator(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.addUser(ada, true)
		w.addUser("off@fernhill.example", true)
		if _, err := w.accounts.Disable(ctx, "off@fernhill.example", false); err != nil {
			t.Fatal(err)
		}
		no := false
		for name, change := range map[string]func(force bool) error{
			"disable": func(force bool) error { return second(w.accounts.Disable(ctx, ada, force)) },
			"demote": func(force bool) error {
				return second(w.accounts.Update(ctx, ada, login.Change{Operator: &no, Force: force}))
			},
			"remove": func(force bool) error { return second(w.accounts.Remove(ctx, ada, force)) },
		} {
			if err := change(false); !errors.Is(err, login.ErrLastOperator) {
				t.Errorf("%s: %v, want ErrLastOperator", name, err)
			}
		}
		if u, err := w.accounts.Get(ctx, ada); err != nil || !u.Enabled() || !u.Operator {
			t.Errorf("after the refusals: %+v, %v; want nothing changed", u, err)
		}
		if err := second(w.accounts.Remove(ctx, ada, true)); err != nil {
			t.Errorf("remove with force: %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// Two operators switch each other off at the same moment, from two processes:
// one of them stays.
func TestAccountsLastTwoOperators(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		ctx, eve := t.Context(), "eve@fernhill.example"
		w.addUser(ada, true)
		w.addUser(eve, true)
		for round := range 15 {
			var refused atomic.Int32
			var both sync.WaitGroup
			for _, who := range []string{ada, eve} {
				both.Go(func() {
					_, err := w.accounts.Disable(ctx, who, false)
					if errors.Is(err, login.ErrLastOperator) {
						refused.Add(1)
					} else if err != nil {
						t.Errorf("disable %s: %v", who, err)
					}
				})
			}
			both.Wait()
			if refused.Load() != 1 {
				t.Fatalf("round %d: %d of 2 were refused, want 1: an operator must stay", round, refused.Load())
			}
			for _, who := range []string{ada, eve} {
				if _, err := w.accounts.Enable(ctx, who); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
