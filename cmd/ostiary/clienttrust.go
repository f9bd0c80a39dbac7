package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/spf13/cobra"
)

func newClientVerifyCmd(c *cli) *cobra.Command {
	var seen string
	cmd := &cobra.Command{Use: "verify CLIENT_ID", Short: "Vouch for a client: people see it as verified and are asked once",
		Long: `Vouch for a client as for one that you added. People see "Verified" beside its
name, what they allow is remembered, and it may ask for restricted scopes. Look at
its redirect URIs before: a client whose responses go to localhost or to an app
cannot prove who it is, verified or not. ostiary client block takes it back. A
client may change between your look and your word: --hash with the hash that
ostiary client show printed verifies that one or none.`,
		Example: `  ostiary client show https://quill.example/oauth/client.json
  ostiary client verify https://quill.example/oauth/client.json --hash E5tN4nTjCoxZb0GbWJUvGGnrP8WcZLJZ0dVJnRdVu2k`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withClients(cmd.Context(), func(a *registration.Admin) error { return c.verifyClient(cmd, a, args[0], seen) })
		}}
	cmd.Flags().StringVar(&seen, "hash", "", "the `hash` that ostiary client show printed: a client that has another one now is not verified")
	addYes(cmd)
	addJSON(cmd)
	return cmd
}

// verifyClient asks first when the client can be mistaken for another, and
// vouches for the client as it was then: the one with the hash seen, where the
// operator named it.
func (c *cli) verifyClient(cmd *cobra.Command, a *registration.Admin, id, seen string) error {
	client, err := a.Show(cmd.Context(), id)
	if err != nil {
		return clientError(id, err)
	}
	seen = cmp.Or(seen, client.DocumentHash)
	like, err := a.LooksLike(cmd.Context(), client)
	if err != nil {
		return err
	}
	if text := likeness(like); text != "" && client.Enabled() && !client.Trusted() {
		if err := c.confirm(cmd, "%s %s.", called(client), text); err != nil {
			return err
		}
	}
	client, err = a.Verify(cmd.Context(), id, seen)
	return c.printEdited(cmd, id, client, err)
}

func newClientBlockCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "block CLIENT_ID", Short: "Keep a client out and end everything people allowed it",
		Long: `Keep a client out: no sign-in and no token. Everything that people allowed it
ends, and what they allowed is forgotten. It stays out when its metadata document
changes or when it updates its registration, until ostiary client unblock. A
removed client could come back; a blocked one cannot.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withClients(cmd.Context(), func(a *registration.Admin) error { return c.blockClient(cmd, a, args[0]) })
		}}
	addYes(cmd)
	addJSON(cmd)
	return cmd
}

func (c *cli) blockClient(cmd *cobra.Command, a *registration.Admin, id string) error {
	return c.endClient(cmd, a, id, "keeps out", "blocked", a.Block)
}

func newClientUnblockCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "unblock CLIENT_ID", Short: "Let a blocked client ask again, as one that is not verified", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.editClient(cmd, args[0], (*registration.Admin).Unblock)
		}}
	addJSON(cmd)
	return cmd
}

// showClient prints a client, what about it can be mistaken, and when it will be
// removed if nobody uses it.
func (c *cli) showClient(cmd *cobra.Command, a *registration.Admin, id string, end time.Time) error {
	client, err := a.Show(cmd.Context(), id)
	if err != nil {
		return clientError(id, err)
	}
	like, err := a.LooksLike(cmd.Context(), client)
	if err != nil {
		return err
	}
	view, rows := newClientView(client), clientRows(client)
	if client.Kind == registration.KindCIMD {
		doc, err := a.Document(cmd.Context(), id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		view.Document, rows = newDocumentView(doc), append(rows, documentRows(client, doc)...)
	}
	if !end.IsZero() {
		view.ExpiresAt, rows = instant{end}, append(rows, []string{"expires", "when nobody uses it until " + stamp(&instant{end})})
	}
	if text := likeness(like); text != "" && !client.Trusted() {
		view.Warning, rows = text, append(rows, []string{"warning", "it " + text})
	}
	return c.print(cmd, view, func(w io.Writer) { table(w, rows...) })
}

// likeness says in words what about a client can be mistaken, "" for nothing.
func likeness(l registration.Likeness) string {
	switch {
	case l.Of != "":
		return fmt.Sprintf("looks like %q, which is another app", l.Of)
	case l.MixedName:
		return "has a name that mixes alphabets"
	case l.Host != "":
		return fmt.Sprintf("has a host that can be mistaken for another: %s", l.Host)
	}
	return ""
}

// clientState is what the operator decided about a client.
func clientState(client registration.Client) string {
	switch {
	case !client.BlockedAt.IsZero():
		return "blocked"
	case !client.Enabled():
		return "disabled"
	}
	return "enabled"
}

// clientTrust says whether people see the client as verified.
func clientTrust(client registration.Client) string {
	switch {
	case client.Trusted():
		return "verified"
	case !client.VerifiedUntil.IsZero():
		return "changed since verified at " + stamp(&instant{client.VerifiedAt})
	}
	return "not verified"
}
