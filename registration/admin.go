package registration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// Operator is the actor of events from the command line.
const Operator = "operator"

// ErrUnfit is the cause of an error about a change that this client cannot have,
// whatever its value.
var ErrUnfit = errors.New("not for this client")

// Admin is what an operator does with clients, by the command line and later by
// the console (D18). Every change writes its audit event in the same transaction.
type Admin struct {
	// Clients, Tx and Audit are required.
	Clients Store
	Tx      store.Transactor
	Audit   audit.Store
	// Grants and Consents end what a removed client held. Required by Remove.
	Grants   grant.Store
	Consents grant.ConsentStore
	// Documents tells what is known of metadata documents. Required by Document.
	Documents DocumentStore
	// CheckURL, when set, reports with an error that a URL will never be asked for
	// how it is written, as *netguard.Client does.
	CheckURL func(rawURL string) error
	// Now is the clock. Required.
	Now func() time.Time
}

// AddOptions describes a client that the operator adds.
type AddOptions struct {
	// Name is shown to people. Required.
	Name string
	// RedirectURIs are required for authorization_code.
	RedirectURIs []string
	// AuthMethod is none, client_secret_basic, client_secret_post or
	// private_key_jwt; "" is none.
	AuthMethod string
	// Secret is the secret that a client with one has from an earlier system, "" to
	// have one made. See CheckImportedSecret.
	Secret oauth.Secret
	// JWKS are the public keys of a client with private_key_jwt, or JWKSURI says
	// where they are.
	JWKS    []byte
	JWKSURI string
	// GrantTypes default to authorization_code and refresh_token.
	GrantTypes []string
	// Resources, when not empty, are the only ones the client may ask for.
	// client_credentials needs at least one (D23).
	Resources []string
	// Scope, when not empty, is the most it may ask for.
	Scope string
}

// UpdateOptions says what to change; a nil field stays as it is.
type UpdateOptions struct {
	Name         *string
	RedirectURIs *[]string
	GrantTypes   *[]string
	Resources    *[]string
	Scope        *string
	// JWKS and JWKSURI replace each other.
	JWKS    *[]byte
	JWKSURI *string
}

// Add registers a client and returns it with its secret, "" for one that has none
// or brought it. The secret is not shown again (DR-17).
func (a *Admin) Add(ctx context.Context, o AddOptions) (Client, oauth.Secret, error) {
	if o.AuthMethod == "" {
		o.AuthMethod = AuthNone
	}
	m := ClientMetadata{ClientName: o.Name, RedirectURIs: o.RedirectURIs, TokenEndpointAuthMethod: o.AuthMethod,
		GrantTypes: o.GrantTypes, Scope: o.Scope, JWKS: o.JWKS, JWKSURI: o.JWKSURI}
	resources, err := checkOperatorClient(&m, o.Resources)
	if err != nil {
		return Client{}, "", err
	}
	if err := checkKeysURL(a.CheckURL, m.JWKSURI); err != nil {
		return Client{}, "", err
	}
	c, secret := newClient(KindOperator, m, a.Now())
	c.Resources = resources
	var detail map[string]string
	if o.Secret != "" {
		if err := importSecret(&c, o.Secret); err != nil {
			return Client{}, "", err
		}
		secret, detail = "", map[string]string{"secret": "imported"}
	}
	err = a.change(ctx, "client.added", c.ID, detail, func(ctx context.Context) error { return a.Clients.CreateClient(ctx, c) })
	if err != nil {
		return Client{}, "", fmt.Errorf("add client: %w", err)
	}
	return c, secret, nil
}

// Show returns the client, or store.ErrNotFound.
func (a *Admin) Show(ctx context.Context, id string) (Client, error) {
	if !IsClientID(id) {
		return Client{}, fmt.Errorf("show client: %w", store.ErrNotFound)
	}
	return a.Clients.GetClient(ctx, id)
}

// Document returns what is known of a client's metadata document, or
// store.ErrNotFound for a client that has none.
func (a *Admin) Document(ctx context.Context, id string) (ClientDocument, error) {
	return a.Documents.GetClientDocument(ctx, id)
}

// List returns every client, oldest first.
func (a *Admin) List(ctx context.Context) ([]Client, error) { return a.Clients.ListClients(ctx) }

// Update changes what o names and returns the client, or store.ErrNotFound.
// Remembered consents are asked for again, since the document hash changes (CS-11).
func (a *Admin) Update(ctx context.Context, id string, o UpdateOptions) (Client, error) {
	return a.edit(ctx, id, "client.updated", func(c *Client) error {
		if c.Kind == KindCIMD {
			return updateDocumentClient(c, o)
		}
		set(&c.Metadata.ClientName, o.Name)
		set(&c.Metadata.RedirectURIs, o.RedirectURIs)
		set(&c.Metadata.GrantTypes, o.GrantTypes)
		set(&c.Metadata.Scope, o.Scope)
		set(&c.Resources, o.Resources)
		if err := setKeys(&c.Metadata, o); err != nil {
			return err
		}
		resources, err := checkOperatorClient(&c.Metadata, c.Resources)
		if err == nil && o.JWKSURI != nil {
			err = checkKeysURL(a.CheckURL, c.Metadata.JWKSURI)
		}
		c.Resources, c.DocumentHash = resources, c.Metadata.Hash()
		return err
	})
}

// updateDocumentClient limits a client to resources. All else is what its
// metadata document says, and would be so again when that is read.
func updateDocumentClient(c *Client, o UpdateOptions) (err error) {
	resources := o.Resources
	if o.Resources = nil; o != (UpdateOptions{}) {
		return oauth.InvalidClientMetadata("only the resources can be changed: all else is in the client's metadata document").With(ErrUnfit)
	}
	if resources != nil {
		c.Resources, err = canonicalResources(*resources)
	}
	return err
}

// Disable switches the client off: no new request and no token, until Enable.
// Its grants stay. A client that is off already stays as it is.
func (a *Admin) Disable(ctx context.Context, id string) (Client, error) {
	return a.edit(ctx, id, "client.disabled", func(c *Client) error {
		if c.DisabledAt.IsZero() {
			c.DisabledAt = a.Now()
		}
		return nil
	})
}

// Enable switches the client on again. It returns ErrBlocked for one that is
// blocked, which would stay out.
func (a *Admin) Enable(ctx context.Context, id string) (Client, error) {
	return a.edit(ctx, id, "client.enabled", func(c *Client) error {
		if !c.BlockedAt.IsZero() {
			return ErrBlocked
		}
		c.DisabledAt = time.Time{}
		return nil
	})
}

// Remove deletes the client, ends its grants and forgets the consents given to
// it (CA-15). It returns how many grants it ended, or store.ErrNotFound.
func (a *Admin) Remove(ctx context.Context, id string) (ended int, err error) {
	if !IsClientID(id) {
		return 0, fmt.Errorf("remove client: %w", store.ErrNotFound)
	}
	detail := map[string]string{}
	err = a.change(ctx, "client.removed", id, detail, func(ctx context.Context) error {
		if _, err := a.Clients.HoldClient(ctx, id); err != nil {
			return err
		}
		n, err := grant.EndAll(ctx, a.Consents, a.Grants, grant.Filter{ClientID: id}, grant.ReasonClient, a.Now())
		if err != nil {
			return err
		}
		ended, detail["grants_ended"] = n, fmt.Sprint(n)
		return a.Clients.DeleteClient(ctx, id)
	})
	if err != nil {
		return 0, fmt.Errorf("remove client: %w", err)
	}
	return ended, nil
}

// edit reads, changes and writes a client in one transaction. The row is held:
// another change going on meanwhile waits, and is not overwritten.
func (a *Admin) edit(ctx context.Context, id, event string, fn func(*Client) error) (c Client, err error) {
	return a.editWith(ctx, id, event, nil, fn)
}

// editWith is edit whose event has a detail, which fn may fill.
func (a *Admin) editWith(ctx context.Context, id, event string, detail map[string]string, fn func(*Client) error) (c Client, err error) {
	if !IsClientID(id) {
		return Client{}, fmt.Errorf("%s: %w", event, store.ErrNotFound)
	}
	err = a.change(ctx, event, id, detail, func(ctx context.Context) error {
		got, err := a.Clients.HoldClient(ctx, id)
		if err != nil {
			return err
		}
		if err := fn(&got); err != nil {
			return err
		}
		got.UpdatedAt = a.Now()
		c = got
		return a.Clients.UpdateClient(ctx, got)
	})
	return c, err
}

// change runs fn and appends the audit event in one transaction.
func (a *Admin) change(ctx context.Context, event, id string, detail map[string]string, fn func(ctx context.Context) error) error {
	return a.Tx.InTx(ctx, func(ctx context.Context) error {
		if err := fn(ctx); err != nil {
			return err
		}
		return a.Audit.Append(ctx, audit.New(ctx, a.Now(), audit.Event{Name: event, Actor: Operator, ClientID: id, Detail: detail}))
	})
}

// checkOperatorClient applies the rules of registration with the operator's
// freedom, and returns the resources in canonical form.
func checkOperatorClient(m *ClientMetadata, resources []string) ([]string, error) {
	if NormalizeName(m.ClientName) == "" {
		return nil, oauth.InvalidClientMetadata("client_name is required")
	}
	for _, g := range m.GrantTypes {
		if !slices.Contains(operatorAdded().grants, g) {
			return nil, oauth.InvalidClientMetadata("grant type must be one of %s", strings.Join(operatorAdded().grants, ", "))
		}
	}
	if err := m.normalize(operatorAdded()); err != nil {
		return nil, err
	}
	canonical, err := canonicalResources(resources)
	if err != nil {
		return nil, err
	}
	if len(canonical) == 0 && slices.Contains(m.GrantTypes, GrantClientCredentials) {
		return nil, oauth.InvalidClientMetadata("client_credentials needs the resources the client may use: no person is there to choose")
	}
	return canonical, nil
}

// setKeys replaces the client's keys where o names others.
func setKeys(m *ClientMetadata, o UpdateOptions) error {
	if o.JWKS == nil && o.JWKSURI == nil {
		return nil
	}
	if m.TokenEndpointAuthMethod != AuthPrivateKeyJWT {
		return oauth.InvalidClientMetadata("only a client with private_key_jwt has keys; this one has %s", m.TokenEndpointAuthMethod).With(ErrUnfit)
	}
	m.JWKS, m.JWKSURI = nil, ""
	if o.JWKS != nil {
		m.JWKS = *o.JWKS
	}
	set(&m.JWKSURI, o.JWKSURI)
	return nil
}

func canonicalResources(resources []string) ([]string, error) {
	var canonical []string
	for _, r := range resources {
		c, err := oauth.CanonicalResource(r)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(canonical, c) {
			canonical = append(canonical, c)
		}
	}
	return canonical, nil
}

func set[T any](dest *T, v *T) {
	if v != nil {
		*dest = *v
	}
}
