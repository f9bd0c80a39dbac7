package authserver

import (
	"context"
	"errors"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
)

// introspectionAuthMethods are the client authentication methods of the
// introspection endpoint: not "none", since a client_id is no secret, and RFC 7662
// §2.1 has nobody ask who cannot prove who they are.
var introspectionAuthMethods = []string{registration.AuthClientSecretBasic, registration.AuthClientSecretPost,
	registration.AuthPrivateKeyJWT}

// ResourceCredentials finds who asks about tokens. internal/sqlstore implements it.
type ResourceCredentials interface {
	// ResourceByCredential returns the resource whose credential has the ID, or
	// store.ErrNotFound.
	ResourceByCredential(ctx context.Context, id string) (resource.Resource, error)
}

// AskLimit counts questions by who asks. internal/ratelimit implements it.
type AskLimit interface {
	// Wait counts one and returns 0, or how long it must wait.
	Wait(ctx context.Context, key string) (time.Duration, error)
}

// asker is who asks about a token: an MCP server with its own credential, or a
// client. One of the two is set.
type asker struct {
	resource *resource.Resource
	client   *registration.Client
}

// id names the asker; no client_id is a credential's ID.
func (a asker) id() string {
	if a.client != nil {
		return a.client.ID
	}
	return a.resource.Credential.ID
}

// mayKnow reports whether an access token is the asker's business: for it, byte
// for byte, or issued to it (IR-02).
func (a asker) mayKnow(claims *accessTokenClaims) bool {
	if a.client != nil {
		return claims.ClientID == a.client.ID
	}
	return claims.Audience == a.resource.Identifier
}

// authenticateAsker finds who asks and checks the credential (RFC 7662 §2.1).
func (s *Server) authenticateAsker(ctx context.Context, u *unit) (asker, error) {
	if !isAssertion(u.params) {
		creds, err := readCredentials(u)
		if err != nil {
			return asker{}, err
		}
		if resource.IsCredentialID(creds.ids[0]) {
			return s.authenticateResource(ctx, u, creds)
		}
	}
	if err := s.authenticateClient(ctx, u); err != nil {
		return asker{}, err
	}
	if u.method == registration.AuthNone {
		return asker{}, oauth.InvalidClient("a client that cannot authenticate may not ask about tokens")
	}
	return asker{client: u.client}, nil
}

// authenticateResource checks an MCP server's credential, sent as a client's is. An
// unknown one is compared with too, and looks like a wrong secret (CA-02).
func (s *Server) authenticateResource(ctx context.Context, u *unit, creds credentials) (asker, error) {
	if err := s.mayGuess(ctx, creds); err != nil {
		return asker{}, err
	}
	r, err := s.o.Credentials.ResourceByCredential(ctx, creds.ids[0])
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return asker{}, err
	}
	for _, secret := range creds.secrets {
		if r.Credential.CheckSecret(secret, u.now) {
			return asker{resource: &r}, nil
		}
	}
	if err := s.guessed(ctx, creds); err != nil {
		return asker{}, err
	}
	return asker{}, errClient(u.header != "")
}
