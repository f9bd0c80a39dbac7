package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/ostiary-auth/ostiary/authserver"
	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/spf13/cobra"
)

func newTokenCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Look at a token"}
	cmd.AddCommand(newTokenInspectCmd(c))
	return cmd
}

// inspection is what is known of a token; it never repeats the token.
type inspection struct {
	Kind    string `json:"kind"`
	Genuine bool   `json:"genuine"`
	// KID is the signing key of an access token, the state secret of another.
	KID        string          `json:"kid,omitempty"`
	Claims     json.RawMessage `json:"claims,omitempty"`
	Generation *int            `json:"generation,omitempty"`
	Grant      *grantView      `json:"grant,omitempty"`
}

func newTokenInspectCmd(c *cli) *cobra.Command {
	var fromStdin bool
	cmd := &cobra.Command{Use: "inspect", Short: "Say what a token is, whether this server made it, and what became of its grant",
		Example: `  ostiary token inspect < token.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return withHint(usagef("the token is read from standard input: other people of the machine can see a command line"),
					"ostiary token inspect < token.txt")
			}
			_, terminal := c.terminal()
			token, err := c.readSecret("token", "--token-stdin", fromStdin || !terminal)
			if err != nil {
				return err
			}
			return c.withCore(cmd.Context(), func(cfg *config.Config, core *app.Core) error {
				found, err := inspectToken(cmd.Context(), c, cfg.Issuer, core, token)
				if err != nil {
					return err
				}
				return c.print(cmd, found, func(w io.Writer) { printInspection(w, found) })
			})
		}}
	cmd.Flags().BoolVar(&fromStdin, "token-stdin", false, "read the token from standard input")
	addJSON(cmd)
	return cmd
}

func inspectToken(ctx context.Context, c *cli, issuer string, core *app.Core, token oauth.Secret) (inspection, error) {
	if info, ok := authserver.InspectToken(core.Secrets, issuer, token); ok {
		found := inspection{Kind: info.Kind, KID: strconv.Itoa(info.KID), Generation: &info.Generation}
		g, err := core.Store.GetGrant(ctx, info.GrantID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return found, nil
		case err != nil:
			return found, err
		}
		v := viewOf(g, c.now())
		found.Grant, found.Genuine = &v, info.Genuine(g.Salt)
		return found, nil
	}
	claims, kid, err := core.Keys.Verify(oauth.TypeAccessToken, token.Reveal())
	if errors.Is(err, keys.ErrSignature) {
		return inspection{Kind: "unknown"}, nil
	}
	if err != nil {
		return inspection{}, err
	}
	found := inspection{Kind: "access token", Genuine: true, KID: kid, Claims: claims}
	var c9068 struct {
		GrantID string `json:"grant_id"`
	}
	if err := json.Unmarshal(claims, &c9068); err != nil || c9068.GrantID == "" {
		return found, err
	}
	g, err := core.Store.GetGrant(ctx, c9068.GrantID)
	if errors.Is(err, store.ErrNotFound) {
		return found, nil
	}
	if err == nil {
		v := viewOf(g, c.now())
		found.Grant = &v
	}
	return found, err
}

func printInspection(w io.Writer, f inspection) {
	rows := [][]string{{"kind", f.Kind}, {"genuine", strconv.FormatBool(f.Genuine)}}
	if f.KID != "" {
		rows = append(rows, []string{"kid", f.KID})
	}
	if f.Generation != nil {
		rows = append(rows, []string{"generation", strconv.Itoa(*f.Generation)})
	}
	if f.Claims != nil {
		rows = append(rows, []string{"claims", string(f.Claims)})
	}
	if f.Grant != nil {
		rows = append(rows, []string{"grant", f.Grant.ID}, []string{"state", f.Grant.state()})
	}
	table(w, rows...)
}
