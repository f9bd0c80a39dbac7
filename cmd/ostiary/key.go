package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/spf13/cobra"
)

func newKeyCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "key", Short: "List, rotate and retire the keys that sign tokens"}
	cmd.AddCommand(newKeyListCmd(c), newKeyRotateCmd(c), newKeyRetireCmd(c))
	return cmd
}

func newKeyListCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the signing keys, in the order in which they sign", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withCore(cmd.Context(), func(_ *config.Config, core *app.Core) error {
				list, err := core.Keys.List(cmd.Context())
				if err != nil {
					return err
				}
				return c.print(cmd, keyViews(list), func(w io.Writer) { table(w, keyRows(list)...) })
			})
		}}
	addJSON(cmd)
	return cmd
}

func newKeyRotateCmd(c *cli) *cobra.Command {
	var now bool
	cmd := &cobra.Command{Use: "rotate", Short: "Make a new signing key and let it take over", Args: cobra.NoArgs,
		Long: `Make a new signing key. It is published at once and signs in six minutes, when
every cached copy of the key set has expired; the old key stays published for
an hour and a minute more, until its last token has expired whatever
access_token_lifetime is. A running server notices within 30 seconds.

With --now the new key signs at once. Servers that have cached the key set then
refuse new tokens until they fetch it again, for five minutes at most. If the
old key may be known to others, use ostiary key retire KID --force: that one
also unpublishes it.

The new key is of the old one's algorithm; signing_algorithm changes it, at the
next start of ostiary serve.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if now {
				if err := c.confirm(cmd, "MCP servers that have cached the key set refuse new tokens for up to five minutes."); err != nil {
					return err
				}
			}
			return c.withCore(cmd.Context(), func(_ *config.Config, core *app.Core) error {
				done, err := core.Keys.Rotate(cmd.Context(), now)
				if errors.Is(err, keys.ErrRotating) {
					return withHint(err, "wait until it signs, or let it sign at once with --now")
				}
				if err != nil {
					return err
				}
				view := rotationView{Next: newKeyView(done.Next), Previous: keyViews(done.Previous), Immediate: done.Immediate}
				return c.print(cmd, view, func(w io.Writer) { printRotation(w, done) })
			})
		}}
	cmd.Flags().BoolVar(&now, "now", false, "do not wait until cached key sets have expired")
	addYes(cmd)
	addJSON(cmd)
	return cmd
}

// keyView is a signing key as the command line prints it; never its private half.
type keyView struct {
	keys.Info
	CreatedAt instant `json:"created_at"`
	ActiveAt  instant `json:"active_at"`
	RetireAt  instant `json:"retire_at,omitzero"`
}

// rotationView is keys.Rotation as the command line prints it.
type rotationView struct {
	Next      keyView   `json:"next"`
	Previous  []keyView `json:"previous"`
	Immediate bool      `json:"immediate"`
}

func newKeyView(k keys.Info) keyView {
	return keyView{Info: k, CreatedAt: instant{k.CreatedAt}, ActiveAt: instant{k.ActiveAt}, RetireAt: instant{k.RetireAt}}
}

func keyViews(list []keys.Info) []keyView {
	views := make([]keyView, 0, len(list))
	for _, k := range list {
		views = append(views, newKeyView(k))
	}
	return views
}

func printRotation(w io.Writer, done keys.Rotation) {
	when := "signs from " + stamp(&instant{done.Next.ActiveAt}) + " on"
	if done.Immediate {
		when = "signs now"
	}
	_, _ = fmt.Fprintf(w, "%s is published and %s\n", done.Next.KID, when)
	for _, k := range done.Previous {
		_, _ = fmt.Fprintf(w, "%s stays published until %s\n", k.KID, stamp(&instant{k.RetireAt}))
	}
}

func keyRows(list []keys.Info) [][]string {
	rows := [][]string{{"KID", "ALG", "STATE", "SIGNS FROM", "PUBLISHED UNTIL"}}
	for _, k := range list {
		rows = append(rows, []string{k.KID, k.Algorithm, string(k.State), stamp(&instant{k.ActiveAt}), stamp(&instant{k.RetireAt})})
	}
	return rows
}
