package registration_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// CI-17: an operator vouches for the name and the places that they saw, and for
// nothing else of a document.
func TestCI17_WhatTheOperatorVouchedFor(t *testing.T) {
	t.Parallel()
	seen := []string{"http://127.0.0.1/cb", "https://app.quill.example/cb", "com.example.quill:/cb"}
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		for i, tt := range []struct{ name, member, adds, because string }{
			{name: "logo", member: "logo_uri"},
			{name: "website", member: "client_uri"},
			{name: "terms", member: "tos_uri"},
			{name: "another path of a host", adds: "https://app.quill.example/other"},
			{name: "another port of a host", adds: "https://app.quill.example:8443/cb"},
			{name: "another loopback port", adds: "http://127.0.0.1:8765/cb"},
			{name: "the name", member: "client_name", because: "the name changed"},
			{name: "another host", adds: "https://evil.example/cb", because: "responses may go to https://evil.example"},
			{name: "another host of the site", adds: "https://www.quill.example/cb", because: "responses may go to https://www.quill.example"},
			{name: "another loopback host", adds: "http://localhost/cb", because: "responses may go to http://localhost"},
			{name: "another private-use URI", adds: "com.example.quill:/other", because: "responses may go to com.example.quill:/other"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				r := newReader(t, db, func(*registration.DocumentOptions) {})
				id := docURL + "/" + string(rune('a'+i))
				says := func(change map[string]any) registration.Client {
					t.Helper()
					doc := map[string]any{"client_id": id, "client_name": "Quill", "token_endpoint_auth_method": "none", "redirect_uris": seen}
					maps.Copy(doc, change)
					body, err := json.Marshal(doc)
					if err != nil {
						t.Fatal(err)
					}
					r.clock.Advance(25 * time.Hour)
					r.answer = func(string, netguard.GetOptions) (*netguard.Response, error) {
						return &netguard.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, nil
					}
					c, err := r.Resolve(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					return *c
				}
				a := &registration.Admin{Clients: db, Documents: db, Tx: db, Audit: db, Now: r.clock.Now}
				if _, err := a.Verify(t.Context(), id, says(nil).DocumentHash); err != nil {
					t.Fatal(err)
				}
				change := map[string]any{}
				if tt.member != "" {
					change[tt.member] = "https://app.quill.example/changed"
				}
				if tt.adds != "" {
					change["redirect_uris"] = append([]string{tt.adds}, seen...)
				}
				if c := says(change); c.Trusted() != (tt.because == "") {
					t.Errorf("still verified: %t", c.Trusted())
				}
				list, err := db.ListEvents(t.Context(), 100)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range list {
					if e.ClientID != id || e.Name != "client.changed" {
						continue
					}
					if e.Detail["because"] != tt.because || (e.Detail["verified"] == "ended") != (tt.because != "") {
						t.Errorf("D35: %v, want because %q", e.Detail, tt.because)
					}
					return
				}
				t.Errorf("D35: no event client.changed: %+v", list)
			})
		}
	})
}
