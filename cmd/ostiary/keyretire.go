package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/spf13/cobra"
)

func newKeyRetireCmd(c *cli) *cobra.Command {
	var force bool
	cmd := &cobra.Command{Use: "retire KID", Short: "Take a signing key away at once, before its last token has expired", Args: cobra.ExactArgs(1),
		Long: `Take a signing key out of the published key set at once and delete its private
half. Nothing else has to be done after a rotation: old keys go by themselves.
Use it when a key may be known to others.

  next      its rotation is called off; nothing breaks
  retiring  MCP servers refuse the tokens it signed within five minutes; clients
            with a refresh token get new ones by themselves
  active    as retiring; and since another key must sign at once, MCP servers that
            have cached the key set refuse new tokens for up to five minutes.
            Only with --force: ostiary key rotate replaces it without harm

A running server notices within 30 seconds. Write -- before a KID that begins
with a dash.`,
		Example: `  ostiary key retire -- OtbqTzHkeEsUfFm7rB2mLM6b6JpGfRtUUU1nNkJ1kO8`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withCore(cmd.Context(), func(_ *config.Config, core *app.Core) error {
				return c.retireKey(cmd, core.Keys, args[0], force)
			})
		}}
	cmd.Flags().BoolVar(&force, "force", false, "even when it is the key that signs")
	addYes(cmd)
	addJSON(cmd)
	return cmd
}

func (c *cli) retireKey(cmd *cobra.Command, set *keys.Set, kid string, force bool) error {
	k, err := findKey(cmd.Context(), set, kid)
	if err != nil {
		return err
	}
	if k.State == keys.StateActive && !force {
		return keyActive(kid)
	}
	if err := c.confirm(cmd, "%s", whatRetiringBreaks(k.State)); err != nil {
		return err
	}
	done, err := set.Retire(cmd.Context(), kid, force)
	switch {
	case errors.Is(err, keys.ErrActive): // it has begun to sign since
		return keyActive(kid)
	case errors.Is(err, store.ErrNotFound):
		return noKey(kid)
	case err != nil:
		return err
	}
	view := retirementView{Key: newKeyView(done.Key), Signing: newKeyView(done.Signing), Replaced: done.Replaced}
	return c.print(cmd, view, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s is no longer published, and its private half is deleted\n", kid)
		_, _ = fmt.Fprintf(w, "%s signs\n", done.Signing.KID)
	})
}

// retirementView is keys.Retirement as the command line prints it.
type retirementView struct {
	Key      keyView `json:"key"`
	Signing  keyView `json:"signing"`
	Replaced bool    `json:"replaced"`
}

// whatRetiringBreaks says what the operator is about to do, by the key's state.
func whatRetiringBreaks(s keys.State) string {
	switch s {
	case keys.StateNext:
		return "This calls off its rotation: the key that signs now goes on signing."
	case keys.StateRetiring:
		return "MCP servers refuse every token that this key signed, within five minutes."
	case keys.StateActive:
		return "Another key signs at once. MCP servers refuse every token that this key signed, within five minutes, " +
			"and until they fetch the key set again they refuse the new ones too."
	}
	return "This key signs nothing and is not published any more."
}

func findKey(ctx context.Context, set *keys.Set, kid string) (keys.Info, error) {
	list, err := set.List(ctx)
	if err != nil {
		return keys.Info{}, err
	}
	for _, k := range list {
		if k.KID == kid {
			return k, nil
		}
	}
	return keys.Info{}, noKey(kid)
}

func noKey(kid string) error {
	return withHint(fmt.Errorf("there is no signing key %q", kid), "ostiary key list shows them all")
}

func keyActive(kid string) error {
	return withHint(fmt.Errorf("%s signs the tokens of now", kid),
		"ostiary key rotate replaces it without harm; if it may be known to others, add --force")
}
