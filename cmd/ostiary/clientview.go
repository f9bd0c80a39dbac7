package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/spf13/cobra"
)

// clientView is a client as the command line prints it; never its secret's hash.
type clientView struct {
	ClientID string            `json:"client_id"`
	Kind     registration.Kind `json:"kind"`
	registration.ClientMetadata
	Resources  []string `json:"resources,omitempty"`
	Enabled    bool     `json:"enabled"`
	Verified   bool     `json:"verified"`
	DisabledAt instant  `json:"disabled_at,omitzero"`
	BlockedAt  instant  `json:"blocked_at,omitzero"`
	VerifiedAt instant  `json:"verified_at,omitzero"`
	// VerifiedUntil is when it changed since.
	VerifiedUntil instant `json:"verified_until,omitzero"`
	CreatedAt     instant `json:"created_at"`
	UpdatedAt     instant `json:"updated_at"`
	// Hash is that of its metadata, which verify may be bound to.
	Hash       string  `json:"hash"`
	LastUsedAt instant `json:"last_used_at,omitzero"`
	// OldSecretExpiresAt is until when the secret before the last rotation is good.
	OldSecretExpiresAt instant `json:"old_secret_expires_at,omitzero"`
	// Document is what show says of its metadata document.
	Document *documentView `json:"metadata_document,omitempty"`
	// Warning is what show says can be mistaken about it.
	Warning string `json:"warning,omitempty"`
	// ExpiresAt is when list and show say that an idle client will be removed.
	ExpiresAt instant `json:"expires_at,omitzero"`
}

func newClientView(client registration.Client) clientView {
	return clientView{ClientID: client.ID, Kind: client.Kind, ClientMetadata: client.Metadata, Resources: client.Resources,
		Enabled: client.Enabled(), Verified: client.Trusted(), DisabledAt: instant{client.DisabledAt},
		BlockedAt: instant{client.BlockedAt}, VerifiedAt: instant{client.VerifiedAt}, VerifiedUntil: instant{client.VerifiedUntil},
		CreatedAt: instant{client.CreatedAt}, UpdatedAt: instant{client.UpdatedAt}, Hash: client.DocumentHash, LastUsedAt: instant{client.LastUsedAt},
		OldSecretExpiresAt: instant{client.OldSecretExpiresAt}}
}

func (c *cli) printAdded(cmd *cobra.Command, client registration.Client, secret oauth.Secret) error {
	view := struct {
		clientView
		ClientSecret string `json:"client_secret,omitempty"`
	}{newClientView(client), secret.Reveal()}
	return c.print(cmd, view, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "client_id      %s\n", client.ID)
		if secret != "" {
			_, _ = fmt.Fprintf(w, "client_secret  %s\n", secret.Reveal())
			_, _ = fmt.Fprintln(c.err, "Keep the secret now: it is not shown again.")
		}
	})
}

// printClients prints a list with the times at which idle clients end.
func (c *cli) printClients(cmd *cobra.Command, clients []registration.Client, ends map[string]time.Time) error {
	views := make([]clientView, 0, len(clients))
	rows := [][]string{{"CLIENT_ID", "NAME", "KIND", "AUTH", "STATE", "TRUST", "CREATED", "EXPIRES"}}
	for _, client := range clients {
		view, expires := newClientView(client), "-"
		if end, ok := ends[client.ID]; ok {
			view.ExpiresAt, expires = instant{end}, end.Format(time.DateOnly)
		}
		views = append(views, view)
		rows = append(rows, []string{client.ID, cmp.Or(client.DisplayName(), "-"), string(client.Kind),
			client.Metadata.TokenEndpointAuthMethod, clientState(client), clientTrust(client), client.CreatedAt.Format(time.DateOnly), expires})
	}
	return c.print(cmd, views, func(w io.Writer) { table(w, rows...) })
}

// clientRows are the lines of show, for people.
func clientRows(client registration.Client) [][]string {
	m := client.Metadata
	rows := [][]string{
		{"client_id", client.ID}, {"name", cmp.Or(client.DisplayName(), "-")}, {"kind", string(client.Kind)},
		{"state", clientState(client)}, {"trust", clientTrust(client)}, {"auth", m.TokenEndpointAuthMethod}, {"grants", strings.Join(m.GrantTypes, " ")},
	}
	if m.JWKSURI != "" {
		rows = append(rows, []string{"jwks_uri", m.JWKSURI})
	}
	for _, uri := range m.RedirectURIs {
		rows = append(rows, []string{"redirect_uri", uri})
	}
	for _, r := range client.Resources {
		rows = append(rows, []string{"resource", r})
	}
	if m.Scope != "" {
		rows = append(rows, []string{"scope", m.Scope})
	}
	rows = append(rows, []string{"hash", client.DocumentHash}, []string{"created", stamp(&instant{client.CreatedAt})})
	if !client.OldSecretExpiresAt.IsZero() {
		rows = append(rows, []string{"old secret", "good until " + stamp(&instant{client.OldSecretExpiresAt})})
	}
	if !client.LastUsedAt.IsZero() {
		rows = append(rows, []string{"last used", stamp(&instant{client.LastUsedAt})})
	}
	return rows
}
