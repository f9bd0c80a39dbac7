package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/registration"
)

func TestDocumentRows(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	client := registration.Client{ID: "https://app.example:8443/client.json"}
	for _, tt := range []struct {
		name string
		doc  registration.ClientDocument
		want [][]string
	}{
		{"never read", registration.ClientDocument{}, [][]string{{"host", "app.example:8443"}, {"last fetched", "never"}}},
		{"read", registration.ClientDocument{FetchedAt: at}, [][]string{{"host", "app.example:8443"}, {"last fetched", "2026-11-21T12:00:00Z"}}},
		{"read, and failed since", registration.ClientDocument{FetchedAt: at, TriedAt: at.Add(time.Hour), Failures: 2, Failure: "status 403"},
			[][]string{{"host", "app.example:8443"}, {"last fetched", "2026-11-21T12:00:00Z"}, {"failed", "2 times, last at 2026-11-21T13:00:00Z: status 403"}}},
		{"never answered", registration.ClientDocument{TriedAt: at, Failures: 1},
			[][]string{{"host", "app.example:8443"}, {"last fetched", "never"}, {"failed", "once, at 2026-11-21T12:00:00Z: no answer"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, documentRows(client, tt.doc)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}
