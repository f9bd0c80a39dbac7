package authclient

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Machine gets tokens with a credential of the program's own instead of asking a
// person: ClientCredentials, Workload and Enterprise are the three there are. Each is
// configured with the issuer that its credential belongs to, and sends it nowhere
// else. What it gets is not refreshed: it is asked again.
type Machine interface {
	// issuer is the authorization server that the credential belongs to.
	issuer() string
	// check returns what is wrong with the configuration.
	check() error
	// token asks for one access token for what r says.
	token(ctx context.Context, r machineRequest) (*tokenResponse, error)
}

// machineRequest is what a Machine is asked for.
type machineRequest struct {
	endpoint *endpoint
	server   *authorizationServer
	resource string   // the resource parameter; "" sends none
	scopes   []string // none sends none
	prover   prover   // nil: a bearer token
}

// prover makes the DPoP proofs of one key (RFC 9449 §4).
type prover interface {
	// proof returns the proof for one request; nonce and accessToken may be empty.
	proof(method string, target *url.URL, nonce, accessToken string, now time.Time) (string, error)
	// thumbprint is the key's (RFC 7638), for dpop_jkt.
	thumbprint() string
}

// form begins the form of a request with what all of them have.
func (r machineRequest) form(grantType string) url.Values {
	form := url.Values{"grant_type": {grantType}}
	if r.resource != "" {
		form.Set("resource", r.resource)
	}
	if len(r.scopes) > 0 {
		form.Set("scope", strings.Join(r.scopes, " "))
	}
	return form
}

// ask sends the form once.
func (r machineRequest) ask(ctx context.Context, form url.Values, auth clientAuth) (*tokenResponse, error) {
	t, err := r.endpoint.token(ctx, r.server, tokenRequest{form: form, auth: auth, prover: r.prover})
	if err != nil {
		return nil, err
	}
	if t.TokenType != typeBearer && t.TokenType != typeDPoP {
		return nil, fmt.Errorf("the token endpoint answered with a token_type %s, which is none of an access token", quoted(t.TokenType))
	}
	// RFC 6749 §4.4.3: there should be none. The credential gets a new token as well,
	// and nothing more is kept than is used.
	t.RefreshToken = ""
	return t, nil
}

// ClientCredentials gets tokens with the client credentials grant (RFC 6749 §4.4): the
// program is a client of its own, with a secret or a key.
type ClientCredentials struct {
	// Client is the program's registration. Its secret or Key is required.
	Client RegisteredClient
}

func (m *ClientCredentials) issuer() string { return m.Client.Issuer }

func (m *ClientCredentials) check() error {
	if err := m.Client.check(); err != nil {
		return err
	}
	if m.Client.method(nil) == authNone { // RFC 6749 §4.4: confidential clients only
		return errors.New("ClientCredentials: the client has neither a ClientSecret nor a Key")
	}
	return nil
}

// token implements Machine.
func (m *ClientCredentials) token(ctx context.Context, r machineRequest) (*tokenResponse, error) {
	auth, err := m.Client.authTo(r.server)
	if err != nil {
		return nil, err
	}
	return r.ask(ctx, r.form("client_credentials"), auth)
}
