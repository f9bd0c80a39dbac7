package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/spf13/cobra"
)

func newResourceRotateSecretCmd(c *cli) *cobra.Command {
	r := rotation{keep: defaultKeepOld}
	var remove bool
	cmd := &cobra.Command{Use: "rotate-secret URI", Short: "Give an MCP server a new secret to ask about tokens with, printed once; the old one stays good for a while",
		Args: cobra.ExactArgs(1),
		Long: `Give an MCP server a new secret for POST /introspect and print it once, or its
first one. The old secret stays good beside it for seven days, or as long as you
say, so that machines can be changed one after the other. The id stays the same.

--now ends every earlier secret at once: for one that may be known to others.
--end-old ends the old one early and makes no new secret.
--remove takes the credential away: the server can no longer ask.`,
		Example: `  ostiary resource rotate-secret https://mcp.example/files --keep-old 48h
  ostiary resource rotate-secret https://mcp.example/files --now
  ostiary resource rotate-secret https://mcp.example/files --remove`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if remove {
				return c.removeResourceSecret(cmd, args[0])
			}
			return c.rotateResourceSecret(cmd, args[0], r)
		}}
	fs := cmd.Flags()
	r.flags(cmd)
	fs.BoolVar(&remove, "remove", false, "make no new secret, end the old ones and the credential")
	cmd.MarkFlagsMutuallyExclusive("keep-old", "until", "now", "end-old", "remove")
	addYes(cmd)
	addJSON(cmd)
	return cmd
}

func (c *cli) rotateResourceSecret(cmd *cobra.Command, uri string, r rotation) error {
	until, err := r.oldUntil(c.now())
	if err != nil {
		return err
	}
	if r.now || r.endOld {
		if err := c.confirm(cmd, "Every machine of %s that still uses the old secret is refused from now on.", uri); err != nil {
			return err
		}
	}
	ctx := cmd.Context()
	return c.withCore(ctx, func(_ *config.Config, core *app.Core) error {
		if r.endOld {
			res, err := core.Resources.EndOldSecret(ctx, uri)
			if err != nil {
				return resourceSecretError(uri, err)
			}
			return c.printResource(cmd, res)
		}
		res, secret, err := core.Resources.RotateSecret(ctx, uri, oauth.Rotation{OldUntil: until, Drop: r.now})
		if errors.Is(err, resource.ErrNoCredential) {
			if res, secret, err = core.Resources.AddCredential(ctx, uri); err == nil {
				return c.printCredential(cmd, res, secret)
			}
		}
		if err != nil {
			return resourceSecretError(uri, err)
		}
		if err := c.printCredential(cmd, res, secret); err != nil {
			return err
		}
		c.tellOldSecret(res.Credential.HasOldSecret(c.now()), res.Credential.OldSecretExpiresAt)
		return nil
	})
}

func (c *cli) removeResourceSecret(cmd *cobra.Command, uri string) error {
	if err := c.confirm(cmd, "%s can no longer ask about tokens: where it relies on that, it refuses everybody from now on.", uri); err != nil {
		return err
	}
	return c.withCore(cmd.Context(), func(_ *config.Config, core *app.Core) error {
		r, err := core.Resources.RemoveCredential(cmd.Context(), uri)
		if err != nil {
			return resourceSecretError(uri, err)
		}
		return c.printResource(cmd, r)
	})
}

// printCredential prints an MCP server's new secret.
func (c *cli) printCredential(cmd *cobra.Command, r resource.Resource, secret oauth.Secret) error {
	view := struct {
		Resource           string  `json:"resource"`
		ID                 string  `json:"introspection_client_id"`
		Secret             string  `json:"introspection_client_secret"`
		OldSecretExpiresAt instant `json:"old_secret_expires_at,omitzero"`
	}{r.Identifier, r.Credential.ID, secret.Reveal(), instant{r.Credential.OldSecretExpiresAt}}
	return c.print(cmd, view, func(w io.Writer) { c.writeCredential(w, r, secret) })
}

// printAddedResource prints a new MCP server that may ask about tokens.
func (c *cli) printAddedResource(cmd *cobra.Command, r resource.Resource, secret oauth.Secret) error {
	view := struct {
		resourceView
		Secret string `json:"introspection_client_secret"`
	}{newResourceView(r), secret.Reveal()}
	return c.print(cmd, view, func(w io.Writer) {
		plain := r
		plain.Credential = resource.Credential{} // which follows
		c.writeResource(w, plain)
		c.writeCredential(w, r, secret)
	})
}

func (c *cli) writeCredential(w io.Writer, r resource.Resource, secret oauth.Secret) {
	table(w, []string{"introspection_client_id", r.Credential.ID}, []string{"introspection_client_secret", secret.Reveal()})
	_, _ = fmt.Fprintln(c.err, "Keep the secret now: it is not shown again.")
}

// tellOldSecret says what became of the secret before a rotation.
func (c *cli) tellOldSecret(good bool, until time.Time) {
	if good {
		_, _ = fmt.Fprintf(c.err, "The old secret works too until %s.\n", until.UTC().Format(time.RFC3339))
		return
	}
	_, _ = fmt.Fprintln(c.err, "The old secret no longer works.")
}

// resourceSecretError says what to do about an error of a credential.
func resourceSecretError(uri string, err error) error {
	var oe *oauth.Error
	switch {
	case errors.Is(err, oauth.ErrSecretRotating):
		return withHint(err, "wait, or end it with --end-old; --now ends every earlier secret and makes a new one")
	case errors.Is(err, oauth.ErrNoOldSecret), errors.Is(err, resource.ErrNoCredential):
		return withHint(err, "nothing was changed")
	case errors.As(err, &oe) && oe.Code == "invalid_request":
		return withHint(usagef("%s", oe.Description), "nothing was changed; ostiary resource rotate-secret --help shows the flags")
	}
	return resourceError(uri, err)
}
