package sqlstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx := t.Context()
		user := filled[login.User](t)
		full := filled[login.Session](t)
		full.Subject = user.ID
		anonymous := login.Session{ID: "anonymous", CreatedAt: noon(), LastSeenAt: noon(), ExpiresAt: noon().Add(time.Hour)}
		if err := db.CreateUser(ctx, user); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct{ want login.SessionUser }{
			{login.SessionUser{Session: full, UserID: user.ID, Email: user.Email, Name: user.Name, Operator: true, DisabledAt: user.DisabledAt}},
			{login.SessionUser{Session: anonymous}},
		} {
			if ok, err := db.CreateSession(ctx, tt.want.Session, 1); !ok || err != nil {
				t.Fatalf("CreateSession = %v, %v", ok, err)
			}
			if got, err := db.GetSession(ctx, tt.want.ID); err != nil || !cmp.Equal(got, tt.want) {
				t.Errorf("GetSession(%q): %v\n%s", tt.want.ID, err, cmp.Diff(tt.want, got))
			}
		}

		full.LastSeenAt, full.ExpiresAt = noon().Add(20*time.Hour), noon().Add(30*time.Hour)
		if err := db.TouchSession(ctx, full.ID, full.LastSeenAt, full.ExpiresAt); err != nil {
			t.Fatal(err)
		}
		if list, err := db.ListSessions(ctx, user.ID, noon()); err != nil || !cmp.Equal(list, []login.Session{full}) {
			t.Errorf("ListSessions: %v\n%s", err, cmp.Diff([]login.Session{full}, list))
		}
		if list, err := db.ListSessions(ctx, user.ID, full.ExpiresAt); err != nil || len(list) != 0 {
			t.Errorf("ListSessions when they are over = %v, %v; want none", list, err)
		}
		if list, err := db.ListSessions(ctx, "", noon()); err != nil || len(list) != 0 {
			t.Errorf("ListSessions of nobody = %v, %v; want none: anonymous rows belong to nobody", list, err)
		}
		if ok, err := db.DeleteSession(ctx, full.ID); !ok || err != nil {
			t.Errorf("DeleteSession = %v, %v; want true", ok, err)
		}
		if ok, err := db.DeleteSession(ctx, full.ID); ok || err != nil {
			t.Errorf("second DeleteSession = %v, %v; want false", ok, err)
		}
		if _, err := db.GetSession(ctx, full.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("GetSession of a deleted session = %v, want store.ErrNotFound", err)
		}
	})
}

func TestDeleteSessions(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx := t.Context()
		for id, subject := range map[string]string{"a1": "a", "a2": "a", "a3": "a", "b1": "b", "none": ""} {
			s := login.Session{ID: id, Subject: subject, CreatedAt: noon(), LastSeenAt: noon(), ExpiresAt: noon().Add(time.Hour)}
			if ok, err := db.CreateSession(ctx, s, 1); !ok || err != nil {
				t.Fatalf("CreateSession = %v, %v", ok, err)
			}
		}
		if n, err := db.DeleteSessions(ctx, "a", "a2"); n != 2 || err != nil {
			t.Errorf("DeleteSessions but one = %d, %v; want 2", n, err)
		}
		if n, err := db.DeleteSessions(ctx, "", ""); n != 0 || err != nil {
			t.Errorf("DeleteSessions of nobody = %d, %v; want 0", n, err)
		}
		for _, id := range []string{"a2", "b1", "none"} {
			if _, err := db.GetSession(ctx, id); err != nil {
				t.Errorf("session %s: %v; want it kept", id, err)
			}
		}
		if n, err := db.DeleteSessions(ctx, "a", ""); n != 1 || err != nil {
			t.Errorf("DeleteSessions = %d, %v; want 1", n, err)
		}
	})
}

// DO-02: anonymous rows are anybody's to make.
func TestDO02_AnonymousSessionsAreCapped(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ended := noon().Add(time.Hour)
		for _, tt := range []struct {
			id, subject, source string
			at                  time.Time
			want                bool
		}{
			{"1", "", "192.0.2.1", noon(), true},
			{"2", "", "192.0.2.1", noon(), true},
			{"third", "", "192.0.2.1", noon(), false},
			{"signed in", "a", "192.0.2.1", noon(), true},
			{"another source", "", "192.0.2.2", noon(), true},
			{"just before they end", "", "192.0.2.1", ended.Add(-time.Millisecond), false},
			{"when they have ended", "", "192.0.2.1", ended, true},
		} {
			s := login.Session{ID: tt.id, Subject: tt.subject, Source: tt.source, CreatedAt: tt.at, LastSeenAt: tt.at, ExpiresAt: tt.at.Add(time.Hour)}
			if ok, err := db.CreateSession(t.Context(), s, 2); ok != tt.want || err != nil {
				t.Errorf("%s: CreateSession = %v, %v; want %v", tt.id, ok, err, tt.want)
			}
			if _, err := db.GetSession(t.Context(), tt.id); errors.Is(err, store.ErrNotFound) == tt.want {
				t.Errorf("%s: GetSession = %v", tt.id, err)
			}
		}
	})
}
