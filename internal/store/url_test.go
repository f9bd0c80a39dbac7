package store_test

import (
	"testing"

	"github.com/ostiary-auth/ostiary/internal/store"
)

func TestDatabaseURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		url      string
		postgres bool
		path     string // of the SQLite file
	}{
		{url: "postgres://user@host/name", postgres: true},
		{url: "postgresql://host/name", postgres: true},
		{url: "/var/lib/ostiary/ostiary.db", path: "/var/lib/ostiary/ostiary.db"},
		{url: "sqlite:///var/lib/ostiary.db", path: "/var/lib/ostiary.db"},
		{url: "sqlite://ostiary.db", path: "ostiary.db"},
		{url: "file:ostiary.db", path: "ostiary.db"},
		{url: "postgres.db", path: "postgres.db"},
	} {
		t.Run(tt.url, func(t *testing.T) {
			t.Parallel()
			if got := store.IsPostgresURL(tt.url); got != tt.postgres {
				t.Errorf("IsPostgresURL = %t, want %t", got, tt.postgres)
			}
			if got := store.SQLitePath(tt.url); !tt.postgres && got != tt.path {
				t.Errorf("SQLitePath = %q, want %q", got, tt.path)
			}
		})
	}
}
