package authclient

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

const (
	grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange" // RFC 8693 §2.1
	tokenTypeID   = "urn:ietf:params:oauth:token-type:id_token"       // RFC 8693 §3
	tokenTypeJAG  = "urn:ietf:params:oauth:token-type:id-jag"
	typJAG        = "oauth-id-jag+jwt"
)

// Enterprise gets tokens by what a person's employer allows (enterprise-managed
// authorization): the identity provider at which the person has signed in exchanges
// the proof of that (RFC 8693) for an identity assertion authorization grant, which
// the MCP server's authorization server takes in place of consent (RFC 7523 §2.1,
// draft-ietf-oauth-identity-assertion-authz-grant). Each step is made once.
type Enterprise struct {
	// IdentityProvider is the program's registration with the employer's identity
	// provider. Required; it may be a public client. Its metadata needs no PKCE,
	// since nobody is sent there. One on a private network needs
	// Options.AllowPrivate, unless the MCP server is on the same host.
	IdentityProvider RegisteredClient
	// SubjectToken returns what the identity provider gave the program when the
	// person signed in, and is called each time. Required. An ID token must be issued
	// by IdentityProvider.Issuer, and none is sent elsewhere.
	SubjectToken func(ctx context.Context) (Secret, error)
	// SubjectTokenType is what SubjectToken returns (RFC 8693 §3). Default
	// "urn:ietf:params:oauth:token-type:id_token".
	SubjectTokenType string
	// Client is the program's registration with the MCP server's authorization
	// server. Required.
	Client RegisteredClient
}

func (m *Enterprise) issuer() string { return m.Client.Issuer }

func (m *Enterprise) check() error {
	errs := []error{m.IdentityProvider.check(), m.Client.check()}
	if m.SubjectToken == nil {
		errs = append(errs, errors.New("Enterprise: SubjectToken is missing: it says where the person's ID token is"))
	}
	if m.IdentityProvider.Issuer != "" && m.IdentityProvider.Issuer == m.Client.Issuer {
		errs = append(errs, errors.New("Enterprise: the identity provider and the authorization server are the same issuer"))
	}
	return errors.Join(errs...)
}

// token implements Machine.
func (m *Enterprise) token(ctx context.Context, r machineRequest) (*tokenResponse, error) {
	auth, err := m.Client.authTo(r.server) // first: the identity provider is not asked in vain
	if err != nil {
		return nil, err
	}
	jag, err := m.exchange(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("identity provider %s: %w", quoted(m.IdentityProvider.Issuer), err)
	}
	form := r.form(grantJWTBearer)
	form.Set("assertion", jag.Reveal())
	return r.ask(ctx, form, auth)
}

// exchange gets the identity assertion for the authorization server and the resource.
func (m *Enterprise) exchange(ctx context.Context, r machineRequest) (Secret, error) {
	idp, err := r.endpoint.metadataOf(ctx, m.IdentityProvider.Issuer)
	if err != nil {
		return "", err
	}
	auth, err := m.IdentityProvider.authTo(idp)
	if err != nil {
		return "", err
	}
	form, err := m.exchangeForm(ctx, r)
	if err != nil {
		return "", err
	}
	t, err := r.endpoint.token(ctx, idp, tokenRequest{form: form, auth: auth})
	if err != nil {
		return "", err
	}
	if t.IssuedTokenType != tokenTypeJAG {
		return "", fmt.Errorf("it issued a token of type %s instead of an identity assertion", quoted(t.IssuedTokenType))
	}
	return t.AccessToken, m.checkJAG(t.AccessToken, r.server.Issuer)
}

func (m *Enterprise) exchangeForm(ctx context.Context, r machineRequest) (url.Values, error) {
	subject, err := m.SubjectToken(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the subject token: %w", err)
	}
	kind := m.SubjectTokenType
	if kind == "" {
		kind = tokenTypeID
	}
	if kind == tokenTypeID {
		_, claims, err := readJWT(subject.Reveal())
		if err != nil {
			return nil, fmt.Errorf("the ID token %w", err)
		}
		if !claims.Is("iss", m.IdentityProvider.Issuer) {
			iss, _ := claims.Str("iss")
			return nil, refused("the ID token is of the issuer %s", quoted(iss))
		}
	}
	form := r.form(grantExchange)
	form.Set("requested_token_type", tokenTypeJAG)
	form.Set("audience", r.server.Issuer)
	form.Set("subject_token", subject.Reveal())
	form.Set("subject_token_type", kind)
	return form, nil
}

// checkJAG sees that what the identity provider made is an identity assertion for the
// authorization server that is to get it, and no other kind of token.
func (m *Enterprise) checkJAG(jag Secret, audience string) error {
	header, claims, err := readJWT(jag.Reveal())
	if err != nil {
		return fmt.Errorf("the identity assertion %w", err)
	}
	if typ, _ := header.Str("typ"); strings.TrimPrefix(strings.ToLower(typ), "application/") != typJAG {
		return refused("the identity assertion has the typ %s", quoted(typ))
	}
	if !claims.Is("iss", m.IdentityProvider.Issuer) {
		iss, _ := claims.Str("iss")
		return refused("the identity assertion is of the issuer %s", quoted(iss))
	}
	if err := wantAudience(claims, audience); err != nil {
		return fmt.Errorf("the identity assertion: %w", err)
	}
	return nil
}
