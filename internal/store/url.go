package store

import "strings"

// IsPostgresURL reports whether a database URL names PostgreSQL; any other names
// a SQLite file.
func IsPostgresURL(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

// SQLitePath returns the path of the file that a database URL names, which may
// be a bare path or begin with sqlite:// or file:.
func SQLitePath(url string) string {
	return strings.TrimPrefix(strings.TrimPrefix(url, "sqlite://"), "file:")
}
