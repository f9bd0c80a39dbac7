package authserver

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
)

// credentials are what a request presented to authenticate its client.
type credentials struct {
	// ids are the client_id values to try, in order: the form-decoded one, then
	// the raw one for ids without % and + (A17).
	ids     []string
	secrets []oauth.Secret
	// method is the method used: none, client_secret_basic or client_secret_post;
	// clientassertion.go has private_key_jwt.
	method string
}

// errClient is the one answer to every failed client authentication, so that an
// unknown client and a wrong secret look the same (CA-02).
func errClient(basic bool) *oauth.Error {
	e := oauth.InvalidClient("client authentication failed: the client is unknown, disabled, or its credential is wrong")
	if basic {
		e.Challenge = oauth.Challenge{Scheme: "Basic", Params: [][2]string{{"realm", "ostiary"}}}.String()
	}
	return e
}

// authenticateClient finds who asks and checks the credential (RFC 6749 §2.3):
// exactly one method, and it must be the registered one. Failure consumes
// nothing (A18).
func (s *Server) authenticateClient(ctx context.Context, u *unit) error {
	if isAssertion(u.params) {
		return s.authenticateByAssertion(ctx, u)
	}
	creds, err := readCredentials(u)
	if err != nil {
		return err
	}
	if err := s.mayGuess(ctx, creds); err != nil {
		return err
	}
	for i, id := range creds.ids {
		c, err := s.clientFor(ctx, u, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if method, ok := checkCredential(c, creds, creds.secrets[i], u); ok {
			u.client, u.method = c, method
			return nil
		}
	}
	// the same work as for a known client
	registration.HashSecret(creds.ids[0], creds.secrets[0])
	if err := s.guessed(ctx, creds); err != nil {
		return err
	}
	return errClient(u.header != "")
}

// mayGuess refuses whoever sent too many wrong secrets of this client (CA-12).
// Others who use the client from elsewhere are not in their way.
func (s *Server) mayGuess(ctx context.Context, creds credentials) error {
	if s.o.Guesses == nil || !creds.hasSecret() {
		return nil
	}
	return tooManyGuesses(s.o.Guesses.Full(ctx, guessKey(ctx, creds)))
}

// guessed counts a wrong secret.
func (s *Server) guessed(ctx context.Context, creds credentials) error {
	if s.o.Guesses == nil || !creds.hasSecret() {
		return nil
	}
	return tooManyGuesses(s.o.Guesses.Wait(ctx, guessKey(ctx, creds)))
}

func tooManyGuesses(wait time.Duration, err error) error {
	if err != nil {
		return fmt.Errorf("limit wrong client secrets: %w", err)
	}
	if wait > 0 {
		return oauth.TooManyRequests(wait)
	}
	return nil
}

// guessKey names client and network source in a bounded length.
func guessKey(ctx context.Context, creds credentials) string {
	sum := sha256.Sum256([]byte(audit.SourceFrom(ctx).Class() + "\n" + creds.ids[0]))
	return string(sum[:])
}

func (c credentials) hasSecret() bool {
	return slices.ContainsFunc(c.secrets, func(s oauth.Secret) bool { return s != "" })
}

// clientFor returns the client of the loaded grant when it is the one asked
// for, and otherwise reads it: the usual request needs no second statement.
func (s *Server) clientFor(ctx context.Context, u *unit, id string) (*registration.Client, error) {
	if u.loaded != nil && u.loaded.Client != nil && u.loaded.Client.ID == id {
		return u.loaded.Client, nil
	}
	c, err := s.o.Clients.GetClient(ctx, id)
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// checkCredential compares what was presented with what is registered and
// returns the method that authenticated.
func checkCredential(c *registration.Client, creds credentials, secret oauth.Secret, u *unit) (string, bool) {
	if !c.Enabled() {
		return "", false
	}
	if c.IsPublic() || secret == "" && c.Metadata.AcceptsAuthMethod(registration.AuthNone) {
		// x/oauth2 probes public clients with Basic and an empty password (A17); a
		// secret that was never issued is a confusion we refuse (CA-05)
		return registration.AuthNone, secret == ""
	}
	// A secret is the same one in the header and in the body: RFC 6749 §2.3.1 has
	// every server take Basic, and SDKs choose by our list, not by the registration.
	if !c.UsesSecret() || secret == "" {
		return "", false
	}
	return creds.method, c.CheckSecret(secret, u.now)
}

// readCredentials reads the one credential of a request.
func readCredentials(u *unit) (credentials, error) {
	id, secret := u.params.Get("client_id"), oauth.Secret(u.params.Get("client_secret"))
	scheme, encoded, _ := strings.Cut(u.header, " ")
	if u.header == "" || !strings.EqualFold(scheme, "Basic") {
		return bodyCredentials(id, secret)
	}
	creds, err := basicCredentials(strings.TrimSpace(encoded))
	if err != nil {
		return credentials{}, errClient(true).With(err)
	}
	if secret != "" {
		// RFC 6749 §2.3: not more than one method in a request
		return credentials{}, oauth.InvalidRequest("client credentials are both in the Authorization header and in the body")
	}
	if id != "" && id != creds.ids[0] && id != creds.ids[len(creds.ids)-1] {
		return credentials{}, oauth.InvalidRequest("client_id differs from the Authorization header")
	}
	return creds, nil
}

func bodyCredentials(id string, secret oauth.Secret) (credentials, error) {
	if id == "" {
		return credentials{}, oauth.InvalidClient("client_id is missing")
	}
	method := registration.AuthNone
	if secret != "" {
		method = registration.AuthClientSecretPost
	}
	return credentials{ids: []string{id}, secrets: []oauth.Secret{secret}, method: method}, nil
}

// basicCredentials decodes Basic: form-decoded first, as RFC 6749 §2.3.1 says,
// then raw, as the TypeScript SDK sends it (A17).
func basicCredentials(encoded string) (credentials, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") { // which Strict skips
		return credentials{}, errors.New("not base64")
	}
	rawID, rawSecret, ok := strings.Cut(string(raw), ":")
	if !ok || rawID == "" || !isText(string(raw)) {
		return credentials{}, errors.New("malformed Basic credentials")
	}
	creds := credentials{method: registration.AuthClientSecretBasic}
	id, errID := url.QueryUnescape(rawID)
	secret, errSecret := url.QueryUnescape(rawSecret)
	if errID == nil && errSecret == nil && isText(id) && isText(secret) {
		creds.ids, creds.secrets = []string{id}, []oauth.Secret{oauth.Secret(secret)}
	}
	if (errID != nil || errSecret != nil || rawSecret != secret) && !strings.ContainsAny(rawID, "%+") {
		creds.ids, creds.secrets = append(creds.ids, rawID), append(creds.secrets, oauth.Secret(rawSecret))
	}
	if len(creds.ids) == 0 {
		return credentials{}, errors.New("malformed Basic credentials")
	}
	return creds, nil
}

// isText reports whether s may be part of a credential: UTF-8 (RFC 7617 §2.1)
// on one line, which a database can compare (ST-07).
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsAny(s, "\x00\r\n") }

// strength orders authentication methods: refresh may not be weaker than the
// redemption of the code was (D8).
func strength(method string) int {
	switch method {
	case registration.AuthPrivateKeyJWT:
		return 2
	case registration.AuthClientSecretBasic, registration.AuthClientSecretPost:
		return 1
	}
	return 0
}
