package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ostiary-auth/ostiary/authclient"
)

const logoutLong = `End a login at an MCP server: its tokens are revoked at the authorization server
that issued them, and forgotten here, even when they cannot be revoked. The client's
registration stays for the next login.`

// logoutView is what logout did.
type logoutView struct {
	Server  string `json:"server"`
	Account string `json:"account,omitempty"`
	// WasLoggedIn is false when nothing was stored.
	WasLoggedIn bool `json:"was_logged_in"`
}

func newLogoutCmd(c *cli) *cobra.Command {
	var f callerFlags
	cmd := &cobra.Command{Use: "logout MCP_URL", Short: "Revoke and forget a login", Long: logoutLong, Args: cobra.ExactArgs(1),
		Example: "  ostiary logout https://mcp.example.com/mcp",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.newCaller(cmd, args[0], &f, nil)
			if err != nil {
				return err
			}
			return c.logout(cmd, client, &f)
		}}
	f.define(cmd.Flags())
	addJSON(cmd)
	return cmd
}

func (c *cli) logout(cmd *cobra.Command, client *caller, f *callerFlags) error {
	_, err := client.Status(cmd.Context())
	view := logoutView{Server: client.server, Account: f.account, WasLoggedIn: !errors.Is(err, authclient.ErrNotFound)}
	if err := client.Logout(cmd.Context()); err != nil {
		var ours *hintedError // of the store
		if errors.As(err, &ours) {
			return err
		}
		return withHint(err, "what was stored here is gone; the authorization server's page of connected apps ends the rest")
	}
	return c.print(cmd, view, func(w io.Writer) {
		if view.WasLoggedIn {
			_, _ = fmt.Fprintf(w, "Logged out of %s: the tokens are revoked and forgotten.\n", terminalLine(view.Server))
		} else {
			_, _ = fmt.Fprintf(w, "Nothing was stored for %s.\n", terminalLine(view.Server))
		}
	})
}
