package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/internal/printable"
)

const loginLong = `Log in to an MCP server, as an MCP client does: find its authorization server,
register, open your browser, and keep the token that comes back. The server may be
anybody's. ostiary call uses the login from then on and refreshes it by itself.

Nothing is printed that opens anything, unless --print asks for the access token.
With --print a login that is stored already is used, and refreshed when it has
expired, so that a script may ask each time:

  curl -H "Authorization: Bearer $(ostiary login --print MCP_URL)" …

A login belongs to the server's address, to --account, and to the authorization
server that made it. Should the server name another one later, nothing of it is sent
there.

On a machine without a browser, --no-browser prints an address to open elsewhere;
the browser ends at a page that cannot be reached, whose address you paste here.
--device shows a short code instead, where the authorization server can.`

const loginExample = `  ostiary login https://mcp.example.com/mcp
  ostiary login http://localhost:9100/mcp --scope notes:write
  ostiary login https://mcp.example.com/mcp --no-browser
  ostiary login https://mcp.example.com/mcp --client-id my-app --issuer https://auth.example.com`

// loginFlags are what `ostiary login` is told besides.
type loginFlags struct {
	callerFlags
	print bool
}

func newLoginCmd(c *cli) *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{Use: "login MCP_URL", Short: "Log in to an MCP server and keep the token", Long: loginLong, Example: loginExample,
		Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			if f.store == storeMemory && !f.print {
				return withHint(usagef("--store memory forgets the login at once"), "add --print, or leave --store out")
			}
			client, err := c.newCaller(cmd, args[0], &f.callerFlags, c.authorizer(&f.callerFlags))
			if err != nil {
				return err
			}
			return f.explain(c.login(cmd, client, &f), args[0])
		}}
	cmd.Flags().BoolVar(&f.print, "print", false, "print the access token; log in only when none is stored that will do")
	f.defineAsking(cmd.Flags())
	f.define(cmd.Flags())
	addJSON(cmd)
	return cmd
}

// loginView is a login as the command line prints it.
type loginView struct {
	Server      string   `json:"server"`
	Account     string   `json:"account,omitempty"`
	Issuer      string   `json:"issuer"`
	Resource    string   `json:"resource,omitempty"`
	ClientID    string   `json:"client_id"`
	Scope       string   `json:"scope,omitempty"`
	ExpiresAt   *instant `json:"expires_at,omitempty"`
	Refreshable bool     `json:"refreshable"`
	Store       string   `json:"store"`
	TokenType   string   `json:"token_type"`
	// AccessToken is there with --print alone.
	AccessToken string `json:"access_token,omitempty"`
}

func (c *cli) login(cmd *cobra.Command, client *caller, f *loginFlags) error {
	ctx := cmd.Context()
	stored, err := client.Status(ctx)
	if err != nil && !errors.Is(err, authclient.ErrNotFound) {
		return err
	}
	if !f.print || err == nil && len(without(splitScopes(f.scopes), stored.Scopes)) > 0 {
		if err := client.Login(ctx); err != nil {
			return err
		}
	}
	view := loginView{Server: client.server, Account: f.account, Store: client.place}
	if f.print {
		token, err := client.TokenSource(ctx).Token()
		if err != nil {
			return err
		}
		if token.TokenType == "DPoP" {
			return errors.New("the token is bound to a key of this program and opens nothing without it: it is not printed")
		}
		view.AccessToken = token.AccessToken
	}
	if stored, err = client.Status(ctx); err != nil {
		return err
	}
	if missing := without(splitScopes(f.scopes), stored.Scopes); len(missing) > 0 {
		_, _ = fmt.Fprintf(c.err, "Not granted: %s\n", strings.Join(missing, " "))
	}
	view.Issuer, view.Resource, view.ClientID, view.Scope = stored.Issuer, stored.Resource, stored.ClientID, strings.Join(stored.Scopes, " ")
	view.ExpiresAt, view.Refreshable, view.TokenType = optional(stored.Expiry), stored.Refreshable, stored.TokenType
	return c.print(cmd, view, func(w io.Writer) { printLogin(w, view, c.now()) })
}

// without returns the scopes that were asked for and not granted.
func without(asked, granted []string) []string {
	return slices.DeleteFunc(asked, func(s string) bool { return slices.Contains(granted, s) })
}

func printLogin(w io.Writer, v loginView, now time.Time) {
	if v.AccessToken != "" {
		_, _ = fmt.Fprintln(w, printable.Whole(v.AccessToken))
		return
	}
	_, _ = fmt.Fprintf(w, "Logged in to %s\n\n", terminalLine(v.Server))
	rows := [][]string{{"  issuer", terminalLine(v.Issuer)}, {"  client_id", terminalLine(v.ClientID)}}
	if v.Account != "" {
		rows = append(rows, []string{"  account", terminalLine(v.Account)})
	}
	if v.Scope != "" {
		rows = append(rows, []string{"  scope", terminalLine(v.Scope)})
	}
	rows = append(rows, []string{"  good for", lifetime(v, now)}, []string{"  kept in", terminalLine(v.Store)})
	table(w, rows...)
	_, _ = fmt.Fprintf(w, "\nTry it:  ostiary call %s\n", printable.Whole(v.Server))
}

// lifetime says how long the login lasts.
func lifetime(v loginView, now time.Time) string {
	switch {
	case v.ExpiresAt == nil && v.Refreshable:
		return "as long as the server says; it can be refreshed"
	case v.ExpiresAt == nil:
		return "as long as the server says"
	case v.Refreshable:
		return roughly(v.ExpiresAt.Sub(now)) + ", then it is refreshed"
	}
	return roughly(v.ExpiresAt.Sub(now)) + ", then log in again"
}

// roughly is a duration for people.
func roughly(d time.Duration) string {
	unit, name := time.Second, "second"
	switch {
	case d >= 2*day:
		unit, name = day, "day"
	case d >= 2*time.Hour:
		unit, name = time.Hour, "hour"
	case d >= 2*time.Minute:
		unit, name = time.Minute, "minute"
	}
	n := max(0, int((d+unit/2)/unit))
	if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}
