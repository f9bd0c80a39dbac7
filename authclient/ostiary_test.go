package authclient_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/test/testkit/site"
)

// callTool sends a tool call and returns the status.
func callTool(ctx context.Context, t *testing.T, s *site.Site, c *authclient.Client, tool string) int {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := c.HTTPClient().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// A program's life with an Ostiary: login, refresh, step-up, another process, revoke.
func TestOstiary(t *testing.T) {
	t.Parallel()
	s := site.Start(t)
	store := authclient.NewMemoryStore()
	withStore := func(o *authclient.Options) { o.Store = store }
	c := s.Client(withStore)
	if got := callTool(t.Context(), t, s, c, "greet"); got != http.StatusOK {
		t.Fatalf("first call: %d", got)
	}
	status, err := c.Status(t.Context())
	if err != nil || status.Issuer != s.Server.Config.Issuer || status.Resource != s.URL || !status.Refreshable || !slices.Contains(status.Scopes, "notes:read") {
		t.Fatalf("status %+v, %v", status, err)
	}

	for range 3 { // refresh, each time with a new token
		s.Server.Clock.Advance(15 * time.Minute)
		if got := callTool(t.Context(), t, s, c, "greet"); got != http.StatusOK {
			t.Fatalf("after a refresh: %d", got)
		}
	}
	if s.Asked() != 1 || s.Requests("POST /token") != 4 || s.Requests("POST /register") != 1 {
		t.Errorf("asked %d times, %d token requests, %d registrations", s.Asked(), s.Requests("POST /token"), s.Requests("POST /register"))
	}

	if got := callTool(t.Context(), t, s, c, "add_note"); got != http.StatusOK { // step-up
		t.Fatalf("after the step-up: %d", got)
	}
	status, err = c.Status(t.Context())
	if err != nil || !slices.Contains(status.Scopes, "notes:read") || !slices.Contains(status.Scopes, "notes:write") || s.Asked() != 2 {
		t.Errorf("status %+v, %v, asked %d times", status, err, s.Asked())
	}

	other := s.Client(withStore, func(o *authclient.Options) { o.Authorizer = nil })
	if got := callTool(t.Context(), t, s, other, "add_note"); got != http.StatusOK {
		t.Errorf("another process: %d", got)
	}

	token, err := c.CurrentToken(t.Context())
	if err != nil || token == nil {
		t.Fatalf("token %v, %v", token, err)
	}
	if err := c.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Requests("POST /revoke") != 1 {
		t.Errorf("%d revocations", s.Requests("POST /revoke"))
	}
	if _, err := c.Status(t.Context()); err == nil {
		t.Error("there is a status after Logout")
	}
}

// The server is restored from a copy and does not know the client any more: it is
// registered anew, and the person asked once.
func TestC5_OstiaryForgetsTheClient(t *testing.T) {
	t.Parallel()
	s := site.Start(t)
	c := s.Client()
	if got := callTool(t.Context(), t, s, c, "greet"); got != http.StatusOK {
		t.Fatalf("first call: %d", got)
	}
	status, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Server.App.Clients.Remove(t.Context(), status.ClientID); err != nil {
		t.Fatal(err)
	}
	s.Server.Clock.Advance(15 * time.Minute)
	if got := callTool(t.Context(), t, s, c, "greet"); got != http.StatusOK {
		t.Fatalf("after the client was removed: %d", got)
	}
	if s.Requests("POST /register") != 2 || s.Asked() != 2 {
		t.Errorf("%d registrations, asked %d times", s.Requests("POST /register"), s.Asked())
	}
}

// The operator removed the client after a logout: the next login registers anew, and the
// person sees no page of errors.
func TestC5_OstiaryRemovedTheClient(t *testing.T) {
	t.Parallel()
	s := site.Start(t)
	store := authclient.NewMemoryStore()
	var clients []string
	for range 2 {
		c := s.Client(func(o *authclient.Options) { o.Store = store })
		if err := c.Login(t.Context()); err != nil {
			t.Fatal(err)
		}
		status, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Logout(t.Context()); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, status.ClientID)
		if _, err := s.Server.App.Clients.Remove(t.Context(), status.ClientID); err != nil {
			t.Fatal(err)
		}
	}
	if clients[0] == clients[1] || s.Asked() != 2 {
		t.Errorf("clients %q, asked %d times", clients, s.Asked())
	}
}
