package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/metadata"
)

// given is what a scenario gives the client: MCP_CONFORMANCE_CONTEXT.
type given struct {
	Issuer           string `json:"issuer"`
	ClientID         string `json:"client_id"`
	ClientSecret     string `json:"client_secret"`
	PrivateKeyPEM    string `json:"private_key_pem"`
	SigningAlgorithm string `json:"signing_algorithm"`
	IDPIssuer        string `json:"idp_issuer"`
	IDPClientID      string `json:"idp_client_id"`
	IDToken          string `json:"idp_id_token"`
	WorkloadToken    string `json:"valid_jwt"`
}

func (g given) client(issuer string) authclient.RegisteredClient {
	return authclient.RegisteredClient{Issuer: issuer, ClientID: g.ClientID, ClientSecret: authclient.Secret(g.ClientSecret)}
}

// machine returns the identity of the scenarios without a person, nil for the others.
func (g given) machine(ctx context.Context, scenario, server string) (authclient.Machine, error) {
	switch scenario {
	case "auth/client-credentials-basic", "auth/client-credentials-jwt", "auth/wif-jwt-bearer", "auth/enterprise-managed-authorization":
	default:
		return nil, nil
	}
	issuer, err := configuredIssuer(ctx, server)
	if err != nil {
		return nil, err
	}
	client := g.client(issuer)
	switch scenario {
	case "auth/wif-jwt-bearer":
		return &authclient.Workload{Issuer: issuer, ClientID: g.ClientID, Token: fixed(g.WorkloadToken)}, nil
	case "auth/enterprise-managed-authorization":
		idp := authclient.RegisteredClient{Issuer: g.IDPIssuer, ClientID: g.IDPClientID}
		return &authclient.Enterprise{IdentityProvider: idp, SubjectToken: fixed(g.IDToken), Client: client}, nil
	case "auth/client-credentials-jwt":
		if client.Key, err = authclient.ParseSigningKey([]byte(g.PrivateKeyPEM)); err != nil {
			return nil, err
		}
		client.Key.Algorithm = g.SigningAlgorithm
	}
	return &authclient.ClientCredentials{Client: client}, nil
}

func fixed(token string) func(context.Context) (authclient.Secret, error) {
	return func(context.Context) (authclient.Secret, error) { return authclient.Secret(token), nil }
}

// configuredIssuer is what the suite leaves out: which authorization server the
// credential belongs to. An operator writes it into a configuration; here it is asked
// of the server that the suite names.
func configuredIssuer(ctx context.Context, server string) (string, error) {
	doc, err := metadata.FetchProtectedResource(ctx, http.DefaultClient, server)
	if err != nil {
		return "", fmt.Errorf("find the issuer that the credential belongs to: %w", err)
	}
	if len(doc.AuthorizationServers) == 0 {
		return "", errors.New("the server's metadata names no authorization server")
	}
	return doc.AuthorizationServers[0], nil
}
