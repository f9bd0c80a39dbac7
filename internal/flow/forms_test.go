package flow_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/flow"
)

func TestCS01_FormTokens(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	f := &flow.HMACForms{Key: []byte("0123456789abcdef0123456789abcdef"), Now: func() time.Time { return now }}
	mine := &flow.Session{ID: "a", Subject: "u1"}
	token := f.Token(mine, "consent", "r1")
	shown := now
	now = now.Add(time.Second)
	if at, err := f.Check(t.Context(), mine, "consent", "r1", token); err != nil || !at.Equal(shown) {
		t.Fatalf("own token: %v, %v, want %v", at, err, shown)
	}
	otherKey := &flow.HMACForms{Key: []byte("another key of thirty-two bytes!!"), Now: f.Now}
	for name, check := range map[string]func() error{
		"another session": func() error {
			_, err := f.Check(t.Context(), &flow.Session{ID: "b", Subject: "u1"}, "consent", "r1", token)
			return err
		},
		"another account in the same session": func() error {
			_, err := f.Check(t.Context(), &flow.Session{ID: "a", Subject: "u2"}, "consent", "r1", token)
			return err
		},
		"no session":      func() error { _, err := f.Check(t.Context(), nil, "consent", "r1", token); return err },
		"another page":    func() error { _, err := f.Check(t.Context(), mine, "sign-in", "r1", token); return err },
		"another request": func() error { _, err := f.Check(t.Context(), mine, "consent", "r2", token); return err },
		"parts moved":     func() error { _, err := f.Check(t.Context(), mine, "consentr", "1", token); return err },
		"another key":     func() error { _, err := otherKey.Check(t.Context(), mine, "consent", "r1", token); return err },
		"none":            func() error { _, err := f.Check(t.Context(), mine, "consent", "r1", ""); return err },
		"changed time":    func() error { _, err := f.Check(t.Context(), mine, "consent", "r1", "B"+token[1:]); return err },
		"stale": func() error {
			later := &flow.HMACForms{Key: f.Key, Now: func() time.Time { return shown.Add(flow.RequestMax + time.Second) }}
			_, err := later.Check(t.Context(), mine, "consent", "r1", token)
			return err
		},
	} {
		if err := check(); !errors.Is(err, flow.ErrFormToken) {
			t.Errorf("%s: %v, want ErrFormToken", name, err)
		}
	}
}
