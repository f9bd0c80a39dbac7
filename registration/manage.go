package registration

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// managedPath is the client configuration endpoint (RFC 7592 §2), below Path.
const managedPath = Path + "/{client_id}"

// configurationURI is the client's registration_client_uri (RFC 7592 §3).
func (h *Handler) configurationURI(clientID string) string { return h.o.Issuer + Path + "/" + clientID }

// read serves GET /register/{client_id} (RFC 7592 §2.1). The token stays the
// same; the secret is not shown again (DR-17).
func (h *Handler) read(w http.ResponseWriter, r *http.Request) error {
	c, token, err := h.manager(r)
	if err != nil {
		return err
	}
	return endpoint.WriteJSON(w, http.StatusOK, h.newResponse(c, "", token))
}

// update serves PUT /register/{client_id} (RFC 7592 §2.2): the document takes
// the place of the whole registration, by the rules of registration, and the
// registration access token is replaced.
func (h *Handler) update(w http.ResponseWriter, r *http.Request) error {
	c, token, err := h.manager(r)
	if err != nil {
		return err
	}
	if h.o.Policy.Mode == ModeClosed {
		return closed()
	}
	doc, err := readUpdate(w, r, &c)
	if err != nil {
		return err
	}
	m, err := h.readMetadata(r.Context(), doc)
	if err != nil {
		return err
	}
	c, secret, next, err := h.replace(r.Context(), c.ID, token, m)
	if err != nil {
		return err
	}
	return endpoint.WriteJSON(w, http.StatusOK, h.newResponse(c, secret, next))
}

// remove serves DELETE /register/{client_id} (RFC 7592 §2.3): every grant ends
// and every consent is forgotten with the client.
func (h *Handler) remove(w http.ResponseWriter, r *http.Request) error {
	c, token, err := h.manager(r)
	if err != nil {
		return err
	}
	err = h.o.Tx.InTx(r.Context(), func(ctx context.Context) error {
		if _, err := h.hold(ctx, c.ID, token); err != nil {
			return err
		}
		now := h.o.Now()
		ended, err := grant.EndAll(ctx, h.o.Consents, h.o.Grants, grant.Filter{ClientID: c.ID}, grant.ReasonClient, now)
		if err != nil {
			return err
		}
		event := audit.New(ctx, now, audit.Event{Name: "client.removed", Actor: c.ID, ClientID: c.ID,
			Detail: map[string]string{"grants_ended": strconv.Itoa(ended)}})
		return errors.Join(h.o.Clients.DeleteClient(ctx, c.ID), h.o.Audit.Append(ctx, event))
	})
	if err != nil {
		return fmt.Errorf("remove client: %w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// manager returns the client that the path names and the token that manages it.
// RFC 7592 §2.1: an unknown client is a 401 like a wrong token; there is no
// token left to revoke, since its hash was in the client's row.
func (h *Handler) manager(r *http.Request) (Client, oauth.Secret, error) {
	if err := h.limit(r.Context(), audit.SourceFrom(r.Context()).Class()); err != nil {
		return Client{}, "", err
	}
	token, err := bearer(r)
	if err != nil {
		return Client{}, "", err
	}
	if token == "" {
		return Client{}, "", unauthorized("the registration access token is missing", false)
	}
	id := r.PathValue("client_id")
	if !IsClientID(id) {
		return Client{}, "", notManager(nil)
	}
	c, err := h.o.Clients.GetClient(r.Context(), id)
	return c, token, managedBy(&c, token, err)
}

// hold takes the row for the transaction and checks the token again, so that of
// two requests with one token the second finds it replaced.
func (h *Handler) hold(ctx context.Context, id string, token oauth.Secret) (Client, error) {
	c, err := h.o.Clients.HoldClient(ctx, id)
	return c, managedBy(&c, token, err)
}

// managedBy checks the token against a row that was read with err.
func managedBy(c *Client, token oauth.Secret, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return notManager(err)
	case err != nil:
		return err
	case c.Kind != KindDynamic || !c.CheckRegistrationToken(token):
		return notManager(nil)
	case !c.Enabled():
		return &oauth.Error{Code: "access_denied", Status: http.StatusForbidden,
			Description: "the operator switched this client off"}
	}
	return nil
}

func notManager(cause error) *oauth.Error {
	return unauthorized("the registration access token is not valid for this client, or the client is gone: register again", true).With(cause)
}

// readUpdate reads the document of an update and what RFC 7592 §2.2 says about
// the members that are the server's: client_id must be there, and client_secret
// may only repeat what it is.
func readUpdate(w http.ResponseWriter, r *http.Request, c *Client) (members, error) {
	body, err := readDocument(w, r)
	if err != nil {
		return nil, err
	}
	doc, err := readObject(body)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"registration_access_token", "registration_client_uri", "client_secret_expires_at", "client_id_issued_at"} {
		if doc.has(name) {
			return nil, oauth.InvalidClientMetadata("%s must not be sent: it is this server's to say", name)
		}
	}
	var id, secret string
	if err := doc.string("client_id", &id, maxClientID); err != nil || id != c.ID {
		return nil, oauth.InvalidClientMetadata("client_id must be the client's own")
	}
	if err := doc.string("client_secret", &secret, maxWord); err != nil ||
		secret != "" && !oauth.SameHash(c.SecretHash, HashSecret(c.ID, oauth.Secret(secret))) {
		return nil, oauth.InvalidClientMetadata("client_secret must be the client's own, or left out: a client cannot choose it")
	}
	return doc, nil
}

// replace writes new metadata and a new token over the client. A secret is made
// where the new authentication method needs one and the old did not. Grants
// stay: codes and refresh tokens are bound to what they were issued for (DR-16).
func (h *Handler) replace(ctx context.Context, id string, token oauth.Secret, m ClientMetadata) (c Client, secret, next oauth.Secret, err error) {
	err = h.o.Tx.InTx(ctx, func(ctx context.Context) error {
		if c, err = h.hold(ctx, id, token); err != nil {
			return err
		}
		old := c.Metadata
		c.Metadata, c.DocumentHash, c.UpdatedAt = m, m.Hash(), h.o.Now()
		secret = c.adaptSecret()
		next = newRegistrationToken()
		c.RegistrationTokenHash = HashRegistrationToken(id, next)
		detail := registeredDetail(m)
		if !sameIdentity(&old, &m) && !c.VerifiedAt.IsZero() {
			// the operator verified another name or address than this
			c.VerifiedAt, detail["verified"] = time.Time{}, "ended"
			detail["because"] = cmp.Or(unvouched(&old, &m), "its details changed")
		}
		if !sameAnswer(&old, &m) {
			if err := h.o.Consents.DeleteConsents(ctx, "", id, ""); err != nil {
				return err
			}
		}
		event := audit.New(ctx, c.UpdatedAt, audit.Event{Name: "client.updated", Actor: id, ClientID: id, Detail: detail})
		return errors.Join(h.o.Clients.UpdateClient(ctx, c), h.o.Audit.Append(ctx, event))
	})
	if err != nil {
		return Client{}, "", "", fmt.Errorf("update client: %w", err)
	}
	return c, secret, next, nil
}

// adaptSecret makes the secret fit the authentication method: a new one, which
// it returns, where there was none, and none where the method has no use for it.
func (c *Client) adaptSecret() oauth.Secret {
	switch {
	case !c.UsesSecret():
		c.SecretHash, c.OldSecretHash = nil, nil
		return ""
	case c.SecretHash != nil:
		return ""
	}
	secret := oauth.NewSecret()
	c.SecretHash = HashSecret(c.ID, secret)
	return secret
}

// sameIdentity reports whether everything an operator looked at who verified
// the client is unchanged.
func sameIdentity(a, b *ClientMetadata) bool {
	return sameAnswer(a, b) && a.ClientName == b.ClientName && a.ClientURI == b.ClientURI && a.LogoURI == b.LogoURI &&
		a.TosURI == b.TosURI && a.PolicyURI == b.PolicyURI && a.SoftwareID == b.SoftwareID
}

// sameAnswer reports whether responses go to the same places, and to a client
// that proves itself in the same way: what a remembered consent relies on.
func sameAnswer(a, b *ClientMetadata) bool {
	return slices.Equal(a.RedirectURIs, b.RedirectURIs) && a.TokenEndpointAuthMethod == b.TokenEndpointAuthMethod &&
		bytes.Equal(a.JWKS, b.JWKS) && a.JWKSURI == b.JWKSURI && slices.Equal(a.OtherAuthMethods, b.OtherAuthMethods)
}
