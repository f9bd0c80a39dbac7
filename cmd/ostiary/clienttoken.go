package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/spf13/cobra"
)

func newClientTokenCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Give out initial access tokens: who has one may register clients while registration is token",
		Args: cobra.NoArgs}
	cmd.AddCommand(newClientTokenAddCmd(c), newClientTokenListCmd(c), newClientTokenRemoveCmd(c))
	return cmd
}

// withInitialTokens calls fn with the administration of initial access tokens.
func (c *cli) withInitialTokens(ctx context.Context, fn func(cfg *config.Config, a *registration.InitialAccessTokens) error) error {
	return c.withStore(ctx, func(cfg *config.Config, db *sqlstore.Store) error {
		return fn(cfg, &registration.InitialAccessTokens{Store: db, Tx: db, Audit: db, Now: c.now})
	})
}

func newClientTokenAddCmd(c *cli) *cobra.Command {
	o := registration.NewInitialAccessToken{Uses: 1, Life: registration.DefaultInitialTokenLife}
	cmd := &cobra.Command{Use: "add", Short: "Make an initial access token and print it once", Args: cobra.NoArgs,
		Example: `  ostiary client token add --name "Atlas team" --uses 20 --expires-in 30d`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(o.Name) == "" {
				return withHint(usagef("--name is required: it tells later whom the token was given to"),
					`ostiary client token add --name "Atlas team"`)
			}
			if o.Uses == 0 || o.Life == 0 {
				return withHint(usagef("a token that registers nothing is none: --uses and --expires-in must be more than 0"),
					"ostiary client token add --help shows the flags")
			}
			return c.withInitialTokens(cmd.Context(), func(cfg *config.Config, a *registration.InitialAccessTokens) error {
				added, token, err := a.Add(cmd.Context(), o)
				if err != nil {
					return initialTokenError("", err)
				}
				return c.printInitialToken(cmd, cfg, added, token)
			})
		}}
	fs := cmd.Flags()
	fs.StringVar(&o.Name, "name", "", "whom it is for, a `name` shown by list")
	fs.IntVar(&o.Uses, "uses", o.Uses, "how many clients it may register")
	daysVar(fs, &o.Life, "expires-in", "how long it is good, a `duration` like 48h or 30d")
	addJSON(cmd)
	return cmd
}

func newClientTokenListCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List initial access tokens, oldest first, also those used up or expired", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withInitialTokens(cmd.Context(), func(_ *config.Config, a *registration.InitialAccessTokens) error {
				list, err := a.List(cmd.Context())
				if err != nil {
					return err
				}
				return c.printInitialTokens(cmd, list)
			})
		}}
	addJSON(cmd)
	return cmd
}

func newClientTokenRemoveCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "remove ID", Short: "Remove an initial access token; clients registered with it stay", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.confirm(cmd, "Nobody can register a client with %s from now on.", args[0]); err != nil {
				return err
			}
			return c.withInitialTokens(cmd.Context(), func(_ *config.Config, a *registration.InitialAccessTokens) error {
				if err := a.Remove(cmd.Context(), args[0]); err != nil {
					return initialTokenError(args[0], err)
				}
				result := struct {
					ID string `json:"id"`
				}{args[0]}
				return c.print(cmd, result, func(w io.Writer) { _, _ = fmt.Fprintf(w, "removed %s\n", args[0]) })
			})
		}}
	addYes(cmd)
	addJSON(cmd)
	return cmd
}

// initialTokenView is an initial access token as the command line prints it;
// never its hash.
type initialTokenView struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	State      string   `json:"state"`
	Uses       int      `json:"uses"`
	MaxUses    int      `json:"max_uses"`
	CreatedAt  instant  `json:"created_at"`
	ExpiresAt  instant  `json:"expires_at"`
	LastUsedAt *instant `json:"last_used_at,omitempty"`
}

func newInitialTokenView(t registration.InitialAccessToken, now time.Time) initialTokenView {
	v := initialTokenView{ID: t.ID, Name: t.Name, State: "usable", Uses: t.Uses, MaxUses: t.MaxUses, CreatedAt: instant{t.CreatedAt},
		ExpiresAt: instant{t.ExpiresAt}, LastUsedAt: optional(t.LastUsedAt)}
	switch {
	case t.Uses >= t.MaxUses:
		v.State = "used up"
	case !t.Usable(now):
		v.State = "expired"
	}
	return v
}

func (c *cli) printInitialToken(cmd *cobra.Command, cfg *config.Config, t registration.InitialAccessToken, token oauth.Secret) error {
	view := struct {
		initialTokenView
		InitialAccessToken string `json:"initial_access_token"`
	}{newInitialTokenView(t, c.now()), token.Reveal()}
	if cfg.Registration != string(registration.ModeToken) {
		_, _ = fmt.Fprintf(c.err, "hint: registration is %s; the token is asked for only while it is token\n", cfg.Registration)
	}
	return c.print(cmd, view, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "id                    %s\n", t.ID)
		_, _ = fmt.Fprintf(w, "initial_access_token  %s\n", token.Reveal())
		_, _ = fmt.Fprintln(c.err, "Keep the token now: it is not shown again.")
	})
}

func (c *cli) printInitialTokens(cmd *cobra.Command, list []registration.InitialAccessToken) error {
	views := make([]initialTokenView, 0, len(list))
	rows := [][]string{{"ID", "NAME", "STATE", "USES", "EXPIRES", "LAST USED"}}
	for _, t := range list {
		v := newInitialTokenView(t, c.now())
		views = append(views, v)
		rows = append(rows, []string{v.ID, v.Name, v.State, strconv.Itoa(v.Uses) + "/" + strconv.Itoa(v.MaxUses),
			stamp(&v.ExpiresAt), stamp(v.LastUsedAt)})
	}
	return c.print(cmd, views, func(w io.Writer) { table(w, rows...) })
}

func initialTokenError(id string, err error) error {
	var oe *oauth.Error
	switch {
	case errors.Is(err, store.ErrNotFound):
		return withHint(fmt.Errorf("there is no initial access token %q", id), "ostiary client token list shows them all")
	case errors.As(err, &oe):
		return withHint(usagef("the token was not made: %s", oe.Description), "ostiary client token add --help shows the flags")
	}
	return err
}
