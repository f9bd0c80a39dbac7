package authclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// grantJWTBearer is grant_type of RFC 7523 §2.1.
const grantJWTBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// Workload gets tokens for a token that the platform gave the program: a Kubernetes
// service account's, a CI job's, a cloud's (workload identity federation, RFC 7523
// §2.1). There is no secret to keep. A refusal is final: the token is sent once, and
// nothing else is tried instead.
type Workload struct {
	// Issuer is the authorization server's issuer identifier. Required. The platform's
	// token must name it as its only audience, and is sent nowhere else.
	Issuer string
	// Token returns the platform's token, and is called each time one is needed:
	// platforms renew them. Required. TokenFile reads one from a file.
	Token func(ctx context.Context) (Secret, error)
	// ClientID is client_id, for authorization servers that want to be told; most
	// know the program by its token.
	ClientID string
}

// TokenFile returns a Workload.Token, or an Enterprise.SubjectToken, that reads the
// token from a file each time, without the white space around it.
func TokenFile(path string) func(context.Context) (Secret, error) {
	return func(context.Context) (Secret, error) {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }()
		b, err := io.ReadAll(io.LimitReader(f, maxAssertion+2))
		if err != nil {
			return "", err
		}
		return Secret(strings.TrimSpace(string(b))), nil
	}
}

func (m *Workload) issuer() string { return m.Issuer }

func (m *Workload) check() error {
	if _, err := parseURL("Issuer of the Workload", m.Issuer); err != nil {
		return err
	}
	if m.Token == nil {
		return errors.New("Workload: Token is missing: it says where the platform's token is")
	}
	return nil
}

// token implements Machine.
func (m *Workload) token(ctx context.Context, r machineRequest) (*tokenResponse, error) {
	if r.server.Issuer != m.Issuer {
		return nil, refused("the MCP server names the authorization server %s, and the workload's token belongs to %s", quoted(r.server.Issuer), quoted(m.Issuer))
	}
	assertion, err := m.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the workload's token: %w", err)
	}
	_, claims, err := readJWT(assertion.Reveal())
	if err != nil {
		return nil, fmt.Errorf("the workload's token %w", err)
	}
	if err := wantAudience(claims, m.Issuer); err != nil {
		return nil, fmt.Errorf("the workload's token: %w", err)
	}
	form := r.form(grantJWTBearer)
	form.Set("assertion", assertion.Reveal())
	if m.ClientID != "" {
		form.Set("client_id", m.ClientID)
	}
	return r.ask(ctx, form, nil)
}

// wantAudience demands that a token is for the issuer and for nobody else: whoever
// else it names could use it too, and so could the issuer there (RFC 7523 §3).
func wantAudience(claims strictjson.Object, issuer string) error {
	if aud := audiences(claims); len(aud) != 1 || aud[0] != issuer {
		return refused("its audience is %s and has to be %s alone", quoted(strings.Join(aud, ", ")), quoted(issuer))
	}
	return nil
}
