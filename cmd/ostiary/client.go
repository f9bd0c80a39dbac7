package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/spf13/cobra"
)

func newClientCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "client", Short: "Add and manage clients (the apps that ask for access)"}
	cmd.AddCommand(newClientAddCmd(c), newClientListCmd(c), newClientShowCmd(c), newClientUpdateCmd(c),
		newClientEnableCmd(c), newClientDisableCmd(c), newClientRemoveCmd(c), newClientTokenCmd(c),
		newClientRotateSecretCmd(c), newClientVerifyCmd(c), newClientBlockCmd(c), newClientUnblockCmd(c))
	return cmd
}

// withClients calls fn with the administration of clients.
func (c *cli) withClients(ctx context.Context, fn func(a *registration.Admin) error) error {
	return c.withClientsAt(ctx, nil, "", fn)
}

// withClientsAt is withClients for a change that limits a client to resources,
// which must be registered: at another one it could never get a token. Scopes that
// none of them has are told of: they may come later.
func (c *cli) withClientsAt(ctx context.Context, resources []string, scope string, fn func(a *registration.Admin) error) error {
	return c.withStore(ctx, func(cfg *config.Config, db *sqlstore.Store) error {
		var known []resource.Resource
		for _, uri := range resources {
			r, err := registered(ctx, cfg, db, uri)
			if err != nil {
				return err
			}
			known = append(known, r)
		}
		if unknown := unknownScopes(known, scope); len(unknown) > 0 {
			_, _ = fmt.Fprintf(c.err, "hint: no resource of this client has the scope %s; ostiary resource show lists what each has\n", strings.Join(unknown, ", "))
		}
		a, err := c.clients(cfg, db)
		if err != nil {
			return err
		}
		return fn(a)
	})
}

func (c *cli) clients(cfg *config.Config, db *sqlstore.Store) (*registration.Admin, error) {
	outbound, err := app.NewOutbound(cfg)
	if err != nil {
		return nil, err
	}
	return &registration.Admin{Clients: db, Documents: db, Tx: db, Audit: db, Grants: db, Consents: db,
		CheckURL: outbound.Check, Now: c.now}, nil
}

// expiries returns when clients that nobody uses will be removed.
func (c *cli) expiries(ctx context.Context, cfg *config.Config, db *sqlstore.Store) (map[string]time.Time, error) {
	idle := registration.Idle{Clients: db, Life: cfg.ClientIdleExpiry, Now: c.now}
	return idle.Expiries(ctx)
}

// registered returns a resource, and refuses one that no client could ask for.
func registered(ctx context.Context, cfg *config.Config, db *sqlstore.Store, uri string) (resource.Resource, error) {
	if _, err := oauth.CanonicalResource(uri); err != nil {
		return resource.Resource{}, resourceError(uri, err)
	}
	if err := adoptIssuer(ctx, cfg, db); err != nil {
		return resource.Resource{}, err
	}
	registry := &resource.Registry{Store: db, Issuer: cfg.Issuer, Dev: cfg.Dev()}
	r, err := registry.ByIdentifier(ctx, uri)
	if errors.Is(err, store.ErrNotFound) {
		return r, withHint(fmt.Errorf("%s is not a registered resource", uri), "ostiary resource add %s", uri)
	}
	return r, err
}

// unknownScopes returns the scopes that none of the resources has. One that
// declares no scopes has them all.
func unknownScopes(resources []resource.Resource, scope string) []string {
	if len(resources) == 0 || slices.ContainsFunc(resources, func(r resource.Resource) bool { return len(r.Scopes) == 0 }) {
		return nil
	}
	return slices.DeleteFunc(strings.Fields(scope), func(name string) bool {
		return name == oauth.OfflineAccess || slices.ContainsFunc(resources, func(r resource.Resource) bool {
			return slices.ContainsFunc(r.Scopes, func(s resource.Scope) bool { return s.Name == name })
		})
	})
}

func newClientAddCmd(c *cli) *cobra.Command {
	var o registration.AddOptions
	var jwks string
	var given secretSource
	cmd := &cobra.Command{Use: "add", Short: "Add a client and print its client_id, and its secret once", Args: cobra.NoArgs,
		Example: `  ostiary client add --name "Quill Desktop" --redirect-uri http://localhost/callback
  ostiary client add --name Atlas --redirect-uri https://atlas.example/cb --auth client_secret_basic --json
  ostiary client add --name "Nightly job" --auth client_secret_basic --grant client_credentials --resource https://mcp.example --scope files:read
  ostiary client add --name Borealis --redirect-uri https://borealis.example/cb --auth private_key_jwt --jwks-uri https://borealis.example/jwks.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(o.Name) == "" {
				return withHint(usagef("--name is required: people see it on the consent page"), `ostiary client add --name "Quill Desktop" --redirect-uri http://localhost/callback`)
			}
			var err error
			if o.JWKS, err = readJWKS(jwks); err != nil {
				return err
			}
			if o.Secret, err = given.read(c); err != nil {
				return err
			}
			return c.withClientsAt(cmd.Context(), o.Resources, o.Scope, func(a *registration.Admin) error {
				added, secret, err := a.Add(cmd.Context(), o)
				if err != nil {
					return clientError("", err)
				}
				return c.printAdded(cmd, added, secret)
			})
		}}
	fs := cmd.Flags()
	fs.StringVar(&o.Name, "name", "", "`name` that people see")
	fs.StringArrayVar(&o.RedirectURIs, "redirect-uri", nil, "redirect `URI` (repeatable)")
	fs.StringVar(&o.AuthMethod, "auth", registration.AuthNone, "`method` at the token endpoint: none, client_secret_basic, client_secret_post or private_key_jwt")
	addKeys(cmd, &jwks, &o.JWKSURI)
	given.flags(cmd)
	fs.StringArrayVar(&o.GrantTypes, "grant", nil, "grant `type` (repeatable; default authorization_code and refresh_token)")
	fs.StringArrayVar(&o.Resources, "resource", nil, "the only resources (MCP servers) the client may ask for, by `URI` (repeatable; default any)")
	fs.StringVar(&o.Scope, "scope", "", "the most it may ask for, `scopes` separated by spaces (default any; by client_credentials the resource's defaults)")
	addJSON(cmd)
	return cmd
}

func newClientListCmd(c *cli) *cobra.Command {
	var within time.Duration
	cmd := &cobra.Command{Use: "list", Short: "List clients, oldest first, and when those that nobody uses are removed", Args: cobra.NoArgs,
		Long: `List clients, oldest first. EXPIRES is when a client that registered itself, or
that is known by its metadata document, will be removed if nobody uses it
(client_idle_expiry); one that somebody is connected with has none.`,
		Example: `  ostiary client list --expires-within 7d`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withStore(cmd.Context(), func(cfg *config.Config, db *sqlstore.Store) error {
				clients, err := db.ListClients(cmd.Context())
				if err != nil {
					return err
				}
				ends, err := c.expiries(cmd.Context(), cfg, db)
				if err != nil {
					return err
				}
				if cmd.Flags().Changed("expires-within") {
					clients = slices.DeleteFunc(clients, func(client registration.Client) bool {
						end, expires := ends[client.ID]
						return !expires || end.After(c.now().Add(within))
					})
				}
				return c.printClients(cmd, clients, ends)
			})
		}}
	daysVar(cmd.Flags(), &within, "expires-within", "only clients that will be removed within this `duration`, like 48h or 14d")
	addJSON(cmd)
	return cmd
}

func newClientShowCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "show CLIENT_ID", Short: "Show one client", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withStore(cmd.Context(), func(cfg *config.Config, db *sqlstore.Store) error {
				ends, err := c.expiries(cmd.Context(), cfg, db)
				if err != nil {
					return err
				}
				a, err := c.clients(cfg, db)
				if err != nil {
					return err
				}
				return c.showClient(cmd, a, args[0], ends[args[0]])
			})
		}}
	addJSON(cmd)
	return cmd
}

func newClientUpdateCmd(c *cli) *cobra.Command {
	var name, scope, jwks, jwksURI string
	var redirects, grants, resources []string
	cmd := &cobra.Command{Use: "update CLIENT_ID", Short: "Change a client; a list that is given replaces the old one",
		Long: `Change a client. A flag that is left out changes nothing; --resource "" and
--scope "" take the limit away. People are asked again the next time the client
wants access.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			fs := cmd.Flags()
			o := registration.UpdateOptions{
				Name: given(cmd, "name", &name), Scope: given(cmd, "scope", &scope),
				RedirectURIs: given(cmd, "redirect-uri", &redirects), GrantTypes: given(cmd, "grant", &grants),
				Resources: given(cmd, "resource", &resources), JWKSURI: given(cmd, "jwks-uri", &jwksURI),
			}
			keys, err := readJWKS(jwks)
			if err != nil {
				return err
			}
			o.JWKS = given(cmd, "jwks", &keys)
			if o == (registration.UpdateOptions{}) {
				return usagef("nothing to change: give one of --name, --redirect-uri, --grant, --resource, --scope, --jwks, --jwks-uri")
			}
			if fs.Changed("resource") && len(resources) == 1 && resources[0] == "" {
				resources = nil
			}
			return c.withClientsAt(cmd.Context(), resources, scope, func(a *registration.Admin) error {
				client, err := a.Update(cmd.Context(), args[0], o)
				return c.printEdited(cmd, args[0], client, err)
			})
		}}
	fs := cmd.Flags()
	fs.StringVar(&name, "name", "", "`name` that people see")
	fs.StringArrayVar(&redirects, "redirect-uri", nil, "redirect `URI` (repeatable)")
	fs.StringArrayVar(&grants, "grant", nil, "grant `type` (repeatable)")
	fs.StringArrayVar(&resources, "resource", nil, "the only resources the client may ask for, by `URI` (repeatable)")
	fs.StringVar(&scope, "scope", "", "the most it may ask for, `scopes` separated by spaces")
	addKeys(cmd, &jwks, &jwksURI)
	addJSON(cmd)
	return cmd
}

// addKeys adds the flags that say which keys a client with private_key_jwt has.
func addKeys(cmd *cobra.Command, jwks, jwksURI *string) {
	cmd.Flags().StringVar(jwks, "jwks", "", "`file` with the client's public keys, a JWK set (private_key_jwt)")
	cmd.Flags().StringVar(jwksURI, "jwks-uri", "", "https `URL` of the client's public keys, which it may change there (private_key_jwt)")
	cmd.MarkFlagsMutuallyExclusive("jwks", "jwks-uri")
}

// readJWKS reads the file with a JWK set, nil for no name.
func readJWKS(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, withHint(fmt.Errorf("read the client's keys: %w", err), `--jwks names a file with {"keys": [...]} (RFC 7517)`)
	}
	return b, nil
}

func newClientEnableCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "enable CLIENT_ID", Short: "Switch a client on again", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.editClient(cmd, args[0], (*registration.Admin).Enable)
		}}
	addJSON(cmd)
	return cmd
}

func newClientDisableCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "disable CLIENT_ID", Short: "Switch a client off: no sign-in and no token until it is enabled",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.editClient(cmd, args[0], (*registration.Admin).Disable)
		}}
	addJSON(cmd)
	return cmd
}

func newClientRemoveCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "remove CLIENT_ID", Short: "Remove a client and end everything people allowed it",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withClients(cmd.Context(), func(a *registration.Admin) error { return c.removeClient(cmd, a, args[0]) })
		}}
	addYes(cmd)
	addJSON(cmd)
	return cmd
}

func (c *cli) removeClient(cmd *cobra.Command, a *registration.Admin, id string) error {
	return c.endClient(cmd, a, id, "removes", "removed", a.Remove)
}

// endClient runs a step that ends every access people gave a client, after asking,
// and prints how many grants that were. does and done are the step's verb: "This
// removes it", "removed it".
func (c *cli) endClient(cmd *cobra.Command, a *registration.Admin, id, does, done string,
	step func(ctx context.Context, id string) (ended int, err error)) error {
	client, err := a.Show(cmd.Context(), id)
	if err != nil {
		return clientError(id, err)
	}
	if err := c.confirm(cmd, "This %s %s and ends every access people gave it.", does, called(client)); err != nil {
		return err
	}
	ended, err := step(cmd.Context(), id)
	if err != nil {
		return clientError(id, err)
	}
	result := struct {
		ClientID    string `json:"client_id"`
		GrantsEnded int    `json:"grants_ended"`
	}{id, ended}
	return c.print(cmd, result, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s %s; %d grants ended\n", done, id, ended)
	})
}

// editClient runs a step on one client and prints what it is now.
func (c *cli) editClient(cmd *cobra.Command, id string, step func(a *registration.Admin, ctx context.Context, id string) (registration.Client, error)) error {
	return c.withClients(cmd.Context(), func(a *registration.Admin) error {
		client, err := step(a, cmd.Context(), id)
		return c.printEdited(cmd, id, client, err)
	})
}

// printEdited prints the client as a step left it, or the step's error.
func (c *cli) printEdited(cmd *cobra.Command, id string, client registration.Client, err error) error {
	if err != nil {
		return clientError(id, err)
	}
	return c.print(cmd, newClientView(client), func(w io.Writer) { table(w, clientRows(client)...) })
}

// clientError says what to do about an error of registration.
func clientError(id string, err error) error {
	var oe *oauth.Error
	switch {
	case errors.Is(err, store.ErrNotFound):
		if strings.HasPrefix(id, "https://") {
			return withHint(fmt.Errorf("nobody has come with the client %q yet", id), "it is known once somebody connects with it; cimd_policy allows or denies its host before")
		}
		return withHint(fmt.Errorf("there is no client %q", id), "ostiary client list shows them all")
	case errors.Is(err, registration.ErrChanged):
		return withHint(fmt.Errorf("%s changed since you looked at it, so it was not verified", id), "look again: ostiary client show %s", id)
	case errors.Is(err, registration.ErrOff):
		return withHint(fmt.Errorf("%s is disabled or blocked, so it was not verified", id), "ostiary client enable or ostiary client unblock lets it in again")
	case errors.Is(err, registration.ErrBlocked):
		return withHint(fmt.Errorf("%s is blocked, so it was not enabled", id), "ostiary client unblock %s lets it in again", id)
	case errors.Is(err, registration.ErrUnfit) && errors.As(err, &oe):
		return withHint(errors.New(oe.Description), "nothing was changed; ostiary client show %s tells what it is", id)
	case errors.Is(err, registration.ErrKeysURL) && errors.As(err, &oe):
		return withHint(usagef("the client was not accepted: %s", oe.Description),
			"for a host of your own network add it, with its port, to outbound_allow_hosts of this server; or give the keys with --jwks")
	case errors.As(err, &oe) && oe.HTTPStatus() < 500:
		return withHint(usagef("the client was not accepted: %s", oe.Description), "nothing was changed; ostiary client %s --help shows the flags", verb(id))
	}
	return err
}

// verb is what was tried where a client was not accepted: one that has no id yet
// was to be added.
func verb(id string) string {
	if id == "" {
		return "add"
	}
	return "update"
}

// called names a client in a question: what it calls itself proves nothing.
func called(client registration.Client) string {
	if name := client.DisplayName(); name != "" {
		return fmt.Sprintf("%q (%s)", name, client.ID)
	}
	return client.ID
}

// given returns the flag's value, or nil when the flag was left out.
func given[T any](cmd *cobra.Command, flag string, value *T) *T {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	return value
}
