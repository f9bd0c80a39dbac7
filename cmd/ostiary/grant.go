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
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/spf13/cobra"
)

func newGrantCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "grant", Short: "See and end what people allowed apps to do"}
	cmd.AddCommand(newGrantListCmd(c), newGrantShowCmd(c), newGrantEndCmd(c))
	return cmd
}

// grantView is a grant as commands print it; never a token and never the salt.
type grantView struct {
	ID             string   `json:"id"`
	Subject        string   `json:"subject"`
	ClientID       string   `json:"client_id"`
	Resource       string   `json:"resource"`
	Scopes         []string `json:"scopes"`
	OfflineAccess  bool     `json:"offline_access"`
	RedirectURI    string   `json:"redirect_uri"`
	Generation     int      `json:"generation"`
	CreatedAt      instant  `json:"created_at"`
	LastUsedAt     *instant `json:"last_used_at,omitempty"`
	RefreshExpires *instant `json:"refresh_expires_at,omitempty"`
	ExpiresAt      instant  `json:"expires_at"`
	EndedAt        *instant `json:"ended_at,omitempty"`
	EndReason      string   `json:"end_reason,omitempty"`
	Live           bool     `json:"live"`
}

func viewOf(g grant.Grant, now time.Time) grantView {
	return grantView{ID: g.ID, Subject: g.Subject, ClientID: g.ClientID, Resource: g.Resource, Scopes: g.Scopes,
		OfflineAccess: g.OfflineAccess, RedirectURI: g.RedirectURI, Generation: g.Generation, CreatedAt: instant{g.CreatedAt},
		LastUsedAt: optional(g.AdvancedAt), RefreshExpires: optional(g.RefreshExpiresAt), ExpiresAt: instant{g.ExpiresAt},
		EndedAt: optional(g.EndedAt), EndReason: g.EndReason, Live: g.Live(now)}
}

// withGrants calls fn with the administration of grants.
func (c *cli) withGrants(ctx context.Context, fn func(a *grant.Admin, db *sqlstore.Store) error) error {
	return c.withStore(ctx, func(_ *config.Config, db *sqlstore.Store) error {
		return fn(&grant.Admin{Store: db, Now: c.now}, db)
	})
}

func newGrantListCmd(c *cli) *cobra.Command {
	var (
		f    grant.Filter
		user string
		all  bool
	)
	cmd := &cobra.Command{Use: "list", Short: "List live grants, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withGrants(cmd.Context(), func(_ *grant.Admin, db *sqlstore.Store) error {
				if !all {
					f.LiveAt = c.now()
				}
				if err := subjectOf(cmd.Context(), db, user, &f); err != nil {
					return err
				}
				list, err := db.ListGrants(cmd.Context(), f)
				if err != nil {
					return err
				}
				return c.printGrants(cmd, list)
			})
		}}
	cmd.Flags().StringVar(&user, "user", "", "only of this person, by `EMAIL` or account id")
	cmd.Flags().StringVar(&f.ClientID, "client", "", "only of this `CLIENT_ID`")
	cmd.Flags().StringVar(&f.Resource, "resource", "", "only at this `RESOURCE`, as registered")
	cmd.Flags().BoolVar(&all, "all", false, "also those that ended, expired or were never redeemed")
	addJSON(cmd)
	return cmd
}

// subjectOf turns an e-mail address into the account id that grants name.
func subjectOf(ctx context.Context, db *sqlstore.Store, user string, f *grant.Filter) error {
	if user == "" {
		return nil
	}
	f.Subject = user
	if !strings.Contains(user, "@") {
		return nil
	}
	u, err := db.GetUserByEmail(ctx, strings.ToLower(user))
	if errors.Is(err, store.ErrNotFound) {
		return withHint(fmt.Errorf("nobody has the e-mail address %s", user), "ostiary user list shows everybody")
	}
	f.Subject = u.ID
	return err
}

func (c *cli) printGrants(cmd *cobra.Command, list []grant.Grant) error {
	views := make([]grantView, 0, len(list))
	rows := [][]string{{"GRANT", "SUBJECT", "CLIENT", "RESOURCE", "SCOPES", "GENERATION", "STATE"}}
	for _, g := range list {
		v := viewOf(g, c.now())
		views = append(views, v)
		rows = append(rows, []string{v.ID, v.Subject, v.ClientID, v.Resource, strings.Join(v.Scopes, " "),
			strconv.Itoa(v.Generation), v.state()})
	}
	return c.print(cmd, views, func(w io.Writer) { table(w, rows...) })
}

func (v grantView) state() string {
	switch {
	case v.EndedAt != nil:
		return "ended: " + v.EndReason
	case v.Live && v.Generation == 0:
		return "code not used yet"
	case v.Live:
		return "live"
	}
	return "expired"
}

func newGrantShowCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "show GRANT", Short: "Show one grant", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withGrants(cmd.Context(), func(_ *grant.Admin, db *sqlstore.Store) error {
				g, err := db.GetGrant(cmd.Context(), args[0])
				if err != nil {
					return grantError(args[0], err)
				}
				return c.printGrant(cmd, g)
			})
		}}
	addJSON(cmd)
	return cmd
}

func newGrantEndCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "end GRANT", Short: "End a grant: its refresh token is dead at once, its access token within its lifetime", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withGrants(cmd.Context(), func(a *grant.Admin, db *sqlstore.Store) error {
				g, err := db.GetGrant(cmd.Context(), args[0])
				if err != nil {
					return grantError(args[0], err)
				}
				if err := c.confirm(cmd, "This ends the access of %s to %s for %s.", g.ClientID, g.Resource, g.Subject); err != nil {
					return err
				}
				if g, err = a.End(cmd.Context(), g.ID); err != nil {
					return grantError(args[0], err)
				}
				return c.printGrant(cmd, g)
			})
		}}
	addJSON(cmd)
	addYes(cmd)
	return cmd
}

func grantError(id string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return withHint(fmt.Errorf("there is no grant %s", id), "ostiary grant list --all shows every grant")
	}
	return err
}

func (c *cli) printGrant(cmd *cobra.Command, g grant.Grant) error {
	v := viewOf(g, c.now())
	return c.print(cmd, v, func(w io.Writer) {
		table(w, []string{"grant", v.ID}, []string{"state", v.state()}, []string{"subject", v.Subject},
			[]string{"client_id", v.ClientID}, []string{"resource", v.Resource},
			[]string{"scopes", strings.Join(v.Scopes, " ")}, []string{"redirect_uri", v.RedirectURI},
			[]string{"generation", strconv.Itoa(v.Generation)}, []string{"created_at", stamp(&v.CreatedAt)},
			[]string{"last_used_at", stamp(v.LastUsedAt)}, []string{"refresh_expires_at", stamp(v.RefreshExpires)},
			[]string{"expires_at", stamp(&v.ExpiresAt)}, []string{"ended_at", stamp(v.EndedAt)})
	})
}
