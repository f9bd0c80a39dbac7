package main

import "time"

// instant is a time as the command line prints it in JSON: RFC 3339 in UTC with
// the milliseconds that the database keeps, whatever command prints it.
type instant struct{ time.Time }

// MarshalJSON returns the time, always of one length.
func (t instant) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000Z07:00"`)), nil
}

// optional is nil, and null in JSON, for no time.
func optional(t time.Time) *instant {
	if t.IsZero() {
		return nil
	}
	return &instant{t}
}

// stamp is a time in a table for people.
func stamp(t *instant) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
