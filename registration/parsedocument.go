package registration

import (
	"slices"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// MaxClientDocument bounds a Client ID Metadata Document, in bytes. The draft
// recommends 5 KiB (§6.6); documents with keys inside are larger (A33).
const MaxClientDocument = 16 << 10

// ParseClientDocument reads and checks the Client ID Metadata Document that was
// read from clientID (draft-ietf-oauth-client-id-metadata-document §4.1), by the
// rules of registration: unknown members are ignored and grant types narrowed
// (D23). Everything refused is invalid_redirect_uri or invalid_client_metadata.
func ParseClientDocument(clientID string, doc []byte) (ClientMetadata, error) {
	if len(doc) > MaxClientDocument {
		return ClientMetadata{}, oauth.InvalidClientMetadata("the document is larger than %d bytes", MaxClientDocument)
	}
	members, err := readObject(doc)
	if err != nil {
		return ClientMetadata{}, err
	}
	if err := members.checkOwn(clientID); err != nil {
		return ClientMetadata{}, err
	}
	m, err := members.metadata()
	if err != nil {
		return ClientMetadata{}, err
	}
	if err := members.chooseAuthMethod(&m); err != nil {
		return ClientMetadata{}, err
	}
	if err := m.normalize(selfRegistered()); err != nil {
		return ClientMetadata{}, err
	}
	// A29, D8: documents leave refresh_token out although their clients refresh
	if !slices.Contains(m.GrantTypes, GrantRefreshToken) {
		m.GrantTypes = append(m.GrantTypes, GrantRefreshToken)
	}
	return m, nil
}

// checkOwn checks what only a document has: it names the URL it was read from,
// compared as text (RFC 3986 §6.2.1), and no secret, for everybody can read it.
func (m members) checkOwn(clientID string) error {
	var id string
	if err := m.string("client_id", &id, maxClientURL); err != nil {
		return err
	}
	if id != clientID {
		return oauth.InvalidClientMetadata("client_id of the document must be the very URL it is read from")
	}
	for _, name := range []string{"client_secret", "client_secret_expires_at"} {
		if _, ok := m[name]; ok {
			return oauth.InvalidClientMetadata("the document must not have %s", name)
		}
	}
	return nil
}

// chooseAuthMethod chooses how the client authenticates: as the document prefers,
// else as it also offers (token_endpoint_auth_methods_supported, OpenID Connect
// RP Metadata Choices). A document cannot share a secret with us (§4.1 of the
// draft), so the default of RFC 7591 §2 is none here. A client that prefers its
// key and offers none too is not told what we chose, so both stay open to it;
// the one that redeems the code binds the grant (D8).
func (m members) chooseAuthMethod(c *ClientMetadata) error {
	var offered []string
	if err := m.stringList("token_endpoint_auth_methods_supported", &offered, oauth.InvalidClientMetadata); err != nil {
		return err
	}
	preferred := c.TokenEndpointAuthMethod
	if preferred == AuthClientSecretBasic || preferred == AuthClientSecretPost || preferred == "client_secret_jwt" {
		return oauth.InvalidClientMetadata("token_endpoint_auth_method must not be %s: a public document cannot hold a secret; use none or private_key_jwt", preferred)
	}
	offersNone := slices.Contains(offered, AuthNone)
	hasKeys := len(c.JWKS) > 0 || c.JWKSURI != ""
	switch {
	case preferred == AuthPrivateKeyJWT && (hasKeys || !offersNone):
		if offersNone {
			c.OtherAuthMethods = []string{AuthNone}
		}
	case preferred == "" && len(offered) > 0 && !offersNone:
		c.TokenEndpointAuthMethod = AuthPrivateKeyJWT
	case preferred == "" || preferred == AuthNone || offersNone:
		c.TokenEndpointAuthMethod = AuthNone
		c.JWKS, c.JWKSURI, c.TokenEndpointAuthSigningAlg = nil, "", ""
	case slices.Contains(offered, AuthPrivateKeyJWT):
		c.TokenEndpointAuthMethod = AuthPrivateKeyJWT
	}
	return nil // another method is refused by the rules of registration
}
