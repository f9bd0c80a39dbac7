package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/registration"
)

// documentView is what show says of a client's metadata document.
type documentView struct {
	FetchedAt  instant `json:"fetched_at,omitzero"`
	FreshUntil instant `json:"fresh_until,omitzero"`
	TriedAt    instant `json:"tried_at,omitzero"`
	RetryAt    instant `json:"retry_at,omitzero"`
	Failures   int     `json:"failures"`
	Failure    string  `json:"failure,omitempty"`
}

func newDocumentView(d registration.ClientDocument) *documentView {
	return &documentView{FetchedAt: instant{d.FetchedAt}, FreshUntil: instant{d.FreshUntil}, TriedAt: instant{d.TriedAt},
		RetryAt: instant{d.RetryAt}, Failures: d.Failures, Failure: d.Failure}
}

// documentRows are the lines of show for a client known by its document.
func documentRows(client registration.Client, d registration.ClientDocument) [][]string {
	read := "never"
	if !d.FetchedAt.IsZero() {
		read = d.FetchedAt.Format(time.RFC3339)
	}
	rows := [][]string{{"host", registration.ClientHost(client.ID)}, {"last fetched", read}}
	if d.Failures > 0 {
		at := "once, at "
		if d.Failures > 1 {
			at = fmt.Sprintf("%d times, last at ", d.Failures)
		}
		rows = append(rows, []string{"failed", at + d.TriedAt.Format(time.RFC3339) + ": " + cmp.Or(d.Failure, "no answer")})
	}
	return rows
}
