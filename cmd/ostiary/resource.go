package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/metadata"
	"github.com/spf13/cobra"
)

// claimsTimeout bounds how long resource add waits for the MCP server.
const claimsTimeout = 5 * time.Second

// scopeHelp explains the value of --scope.
const scopeHelp = `A scope is written name=Title, then any of these fields after semicolons:
  default      granted when a request asks for no scope
  required     people cannot untick it
  restricted   only for clients that the operator added or verified
  risk=RISK    low, changes or permanent
  detail=TEXT  a second line on the consent page
  group=TEXT   a heading for many scopes
  implies=A,B  narrower scopes that this one covers
Where no scope is marked default or required, the first one is the default.`

func newResourceCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "resource", Short: "Register and manage MCP servers (the resources that tokens open)"}
	cmd.AddCommand(newResourceAddCmd(c), newResourceListCmd(c), newResourceShowCmd(c), newResourceUpdateCmd(c),
		newResourceRotateSecretCmd(c), newResourceRemoveCmd(c))
	return cmd
}

// resourceFlags are the flags of add and update.
type resourceFlags struct {
	name          string
	scopes        []string
	isDefault     bool
	set           []string
	remove        []string
	offline       bool
	allowHTTP     bool
	introspection bool
}

func newResourceAddCmd(c *cli) *cobra.Command {
	var f resourceFlags
	cmd := &cobra.Command{Use: "add URI", Short: "Register an MCP server", Args: cobra.ExactArgs(1),
		Long: `Register an MCP server by the URI that its clients use. The URI becomes the
audience of its tokens, exactly as it is given. What the server says of itself
(RFC 9728) is read where it answers; its scopes are taken when none is given.

` + scopeHelp,
		Example: `  ostiary resource add https://mcp.example/files --name "File archive" \
    --scope 'files:read=Read your files;default' \
    --scope 'files:delete=Delete your files;risk=permanent'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			scopes, err := parseScopes(f.scopes)
			if err != nil {
				return err
			}
			r := resource.Resource{Identifier: args[0], Name: f.name, Default: f.isDefault, Scopes: scopes}
			if err := checkDeclared(r); err != nil {
				return err
			}
			return c.withCore(cmd.Context(), func(cfg *config.Config, core *app.Core) error {
				if f.allowHTTP {
					core.Resources.AllowHTTP = true
				}
				return c.addResource(cmd, core, cfg.Issuer, r, f)
			})
		}}
	fs := cmd.Flags()
	fs.StringVar(&f.name, "name", "", "`name` that people see (default host and path)")
	fs.StringArrayVar(&f.scopes, "scope", nil, "`name=Title` of a scope, with fields (repeatable)")
	fs.BoolVar(&f.isDefault, "default", false, "use it for requests that name no resource")
	fs.BoolVar(&f.offline, "offline", false, "do not ask the server about itself")
	fs.BoolVar(&f.allowHTTP, "allow-http", false, "accept http for another host; tokens then travel unencrypted")
	fs.BoolVar(&f.introspection, "introspection", false, "make a credential with which the server may ask about tokens (RFC 7662), printed once")
	addJSON(cmd)
	return cmd
}

// checkDeclared refuses a name and scopes that no server may have: wrong use. A
// missing name is filled in later.
func checkDeclared(r resource.Resource) error {
	r.Name = cmp.Or(r.Name, "name")
	if err := r.Check(); err != nil {
		return withHint(usagef("%v", err), "ostiary resource add --help explains --scope")
	}
	return nil
}

func (c *cli) addResource(cmd *cobra.Command, core *app.Core, issuer string, r resource.Resource, f resourceFlags) error {
	// nobody waits for a server's answer to hear that the command was wrong
	if err := core.Resources.CheckNew(cmd.Context(), r); err != nil {
		return resourceError(r.Identifier, err)
	}
	if !f.offline {
		c.takeClaims(cmd.Context(), issuer, &r)
	}
	if f.introspection {
		added, secret, err := core.Resources.AddWithCredential(cmd.Context(), r)
		if err != nil {
			return resourceError(r.Identifier, err)
		}
		return c.printAddedResource(cmd, added, secret)
	}
	added, err := core.Resources.Add(cmd.Context(), r)
	if err != nil {
		return resourceError(r.Identifier, err)
	}
	return c.printResource(cmd, added)
}

// takeClaims adds what the MCP server says of itself to r and tells the
// operator what to look at; a server that does not answer stops nobody.
func (c *cli) takeClaims(ctx context.Context, issuer string, r *resource.Resource) {
	ctx, cancel := context.WithTimeout(ctx, claimsTimeout)
	defer cancel()
	claims, err := resource.FetchClaims(ctx, nil, r.Identifier, issuer)
	switch {
	case errors.Is(err, metadata.ErrNotServed):
		c.note("%s serves no metadata (RFC 9728), so MCP clients will not find this server from it", r.Identifier)
		return
	case err != nil:
		c.note("the server's own metadata was not read: %v", err)
		return
	}
	r.ClaimedName = claims.Name
	if !claims.ListsIssuer {
		c.note("the server's metadata does not name %s among its authorization_servers yet; clients come here once it does", issuer)
	}
	if r.Name == "" && claims.Name != "" {
		c.note("the server calls itself %q; --name sets what people see", claims.Name)
	}
	if len(r.Scopes) > 0 || len(claims.Scopes) == 0 {
		return
	}
	for _, s := range claims.Scopes {
		r.Scopes = append(r.Scopes, resource.Scope{Name: s})
	}
	c.note("%d scopes were taken from the server's metadata, without titles: ostiary resource update --set-scope 'name=Title' describes them", len(r.Scopes))
}

// note tells the operator something that is no error.
func (c *cli) note(format string, args ...any) {
	_, _ = fmt.Fprintf(c.err, "ostiary: note: "+format+"\n", args...)
}

func newResourceListCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the registered MCP servers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withCore(cmd.Context(), func(_ *config.Config, core *app.Core) error {
				list, err := core.Resources.List(cmd.Context())
				if err != nil {
					return err
				}
				return c.printResources(cmd, list)
			})
		}}
	addJSON(cmd)
	return cmd
}

func newResourceShowCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "show URI", Short: "Show one MCP server and its scopes", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withCore(cmd.Context(), func(_ *config.Config, core *app.Core) error {
				r, err := core.Resources.Get(cmd.Context(), args[0])
				if err != nil {
					return resourceError(args[0], err)
				}
				return c.printResource(cmd, r)
			})
		}}
	addJSON(cmd)
	return cmd
}

func newResourceUpdateCmd(c *cli) *cobra.Command {
	var f resourceFlags
	cmd := &cobra.Command{Use: "update URI", Short: "Change an MCP server's name, scopes or default mark", Args: cobra.ExactArgs(1),
		Long: `Change an MCP server. A flag that is left out changes nothing. --scope gives the
whole list anew (--scope "" empties it); --set-scope adds or replaces one scope,
--remove-scope drops one. The URI cannot change, since tokens name it.

` + scopeHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := f.change(cmd)
			if err != nil {
				return err
			}
			return c.withCore(cmd.Context(), func(_ *config.Config, core *app.Core) error {
				r, err := core.Resources.Update(cmd.Context(), args[0], change)
				if err != nil {
					return resourceError(args[0], err)
				}
				return c.printResource(cmd, r)
			})
		}}
	fs := cmd.Flags()
	fs.StringVar(&f.name, "name", "", "`name` that people see")
	fs.StringArrayVar(&f.scopes, "scope", nil, "`name=Title` of a scope, with fields (repeatable): the new list")
	fs.StringArrayVar(&f.set, "set-scope", nil, "`name=Title` of a scope to add or replace (repeatable)")
	fs.StringArrayVar(&f.remove, "remove-scope", nil, "`name` of a scope to drop (repeatable)")
	fs.BoolVar(&f.isDefault, "default", false, "use it for requests that name no resource; --default=false takes the mark away")
	addJSON(cmd)
	return cmd
}

// change returns what the flags of update do to a resource.
func (f *resourceFlags) change(cmd *cobra.Command) (func(*resource.Resource) error, error) {
	fs := cmd.Flags()
	if !slices.ContainsFunc([]string{"name", "scope", "set-scope", "remove-scope", "default"}, fs.Changed) {
		return nil, usagef("nothing to change: give one of --name, --scope, --set-scope, --remove-scope, --default")
	}
	if slices.Equal(f.scopes, []string{""}) {
		f.scopes = nil
	}
	scopes, err := parseScopes(f.scopes)
	if err != nil {
		return nil, err
	}
	set, err := parseScopes(f.set)
	if err != nil {
		return nil, err
	}
	return func(r *resource.Resource) error {
		if fs.Changed("name") {
			r.Name = f.name
		}
		if fs.Changed("default") {
			r.Default = f.isDefault
		}
		if fs.Changed("scope") {
			r.Scopes = scopes
		}
		return editScopes(r, set, f.remove)
	}, nil
}

// editScopes drops scopes, then adds or replaces others, keeping the order.
func editScopes(r *resource.Resource, set []resource.Scope, remove []string) error {
	list := slices.Clone(r.Scopes)
	for _, name := range remove {
		i := slices.IndexFunc(list, func(s resource.Scope) bool { return s.Name == name })
		if i < 0 {
			return fmt.Errorf("there is no scope %q to remove", name)
		}
		list = slices.Delete(list, i, i+1)
	}
	for _, s := range set {
		if i := slices.IndexFunc(list, func(o resource.Scope) bool { return o.Name == s.Name }); i >= 0 {
			list[i] = s
			continue
		}
		list = append(list, s)
	}
	r.Scopes = list
	return nil
}

func newResourceRemoveCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "remove URI", Short: "Remove an MCP server and end every access to it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withCore(cmd.Context(), func(_ *config.Config, core *app.Core) error {
				return c.removeResource(cmd, core, args[0])
			})
		}}
	addYes(cmd)
	addJSON(cmd)
	return cmd
}

func (c *cli) removeResource(cmd *cobra.Command, core *app.Core, uri string) error {
	ctx := cmd.Context()
	r, err := core.Resources.Get(ctx, uri)
	if err != nil {
		return resourceError(uri, err)
	}
	live, err := core.Store.ListGrants(ctx, grant.Filter{Resource: r.Identifier, LiveAt: c.now()})
	if err != nil {
		return err
	}
	if err := c.confirm(cmd, "This removes %q (%s) and ends %d grants; access tokens already issued live on until they expire.",
		r.Name, r.Identifier, len(live)); err != nil {
		return err
	}
	done, err := core.Resources.Remove(ctx, uri)
	if err != nil {
		return resourceError(uri, err)
	}
	result := struct {
		Resource    string `json:"resource"`
		GrantsEnded int    `json:"grants_ended"`
	}{done.Resource.Identifier, done.GrantsEnded}
	return c.print(cmd, result, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "removed %s; %d grants ended\n", result.Resource, result.GrantsEnded)
	})
}

func parseScopes(specs []string) ([]resource.Scope, error) {
	var list []resource.Scope
	for _, spec := range specs {
		s, err := resource.ParseScopeSpec(spec)
		if err != nil {
			return nil, withHint(usagef("%v", err), "--scope 'files:read=Read your files;default'")
		}
		list = append(list, s)
	}
	return list, nil
}

// resourceError says what to do about an error of resource.
func resourceError(uri string, err error) error {
	var oe *oauth.Error
	switch {
	case errors.Is(err, store.ErrNotFound):
		return withHint(fmt.Errorf("%s is not a registered resource", uri), "ostiary resource list shows them all")
	case errors.Is(err, store.ErrExists):
		return withHint(fmt.Errorf("%s is registered already", uri),
			"ostiary resource update changes it; ostiary resource show %s shows it", uri)
	case errors.As(err, &oe):
		return withHint(usagef("%q cannot be a resource: %s", uri, oe.Description),
			"give the URL at which clients reach the MCP server, such as https://mcp.example/mcp")
	}
	return err
}
