package authclient_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ostiary-auth/ostiary/authclient"
)

// A nightly job calls an MCP server with a client of its own, which the operator of the
// authorization server has added: nobody is asked.
func ExampleClientCredentials() {
	server := demo()
	defer server.Close()
	client, err := authclient.New(authclient.Options{
		Server: server.URL + "/mcp",
		Machine: &authclient.ClientCredentials{Client: authclient.RegisteredClient{
			Issuer:       server.URL, // the secret is sent nowhere else
			ClientID:     "nightly-report",
			ClientSecret: "read from where the job keeps secrets",
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.HTTPClient().Get(server.URL + "/mcp")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	fmt.Println(resp.Status)
	// Output: 200 OK
}

// The same with a private key, which never leaves the program (private_key_jwt). Its
// public half is registered with the authorization server.
func ExampleParseSigningKey() {
	pem, err := os.ReadFile("/run/secrets/nightly-report.pem")
	if err != nil {
		log.Fatal(err)
	}
	key, err := authclient.ParseSigningKey(pem)
	if err != nil {
		log.Fatal(err)
	}
	key.ID = "2026-11" // the kid it is registered with
	client, err := authclient.New(authclient.Options{
		Server: "https://mcp.example.com/mcp",
		Machine: &authclient.ClientCredentials{Client: authclient.RegisteredClient{
			Issuer: "https://id.example.com", ClientID: "nightly-report", Key: key}},
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = client.HTTPClient()
}

// A program in Kubernetes has no secret: the cluster gives it a token, made for the
// authorization server alone (a projected service account token with its issuer as the
// audience), and renews the file.
func ExampleWorkload() {
	client, err := authclient.New(authclient.Options{
		Server: "https://mcp.example.com/mcp",
		Machine: &authclient.Workload{
			Issuer: "https://id.example.com",
			Token:  authclient.TokenFile("/var/run/secrets/tokens/mcp"),
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = client.HTTPClient()
}

// An app whose people sign in at their employer's identity provider gets access to what
// the employer allows, without a consent page at each MCP server.
func ExampleEnterprise() {
	client, err := authclient.New(authclient.Options{
		Server:  "https://mcp.example.com/mcp",
		Account: "ada@corp.example", // one Client for each person
		Machine: &authclient.Enterprise{
			IdentityProvider: authclient.RegisteredClient{Issuer: "https://login.corp.example", ClientID: "notebook-at-idp"},
			SubjectToken:     func(context.Context) (authclient.Secret, error) { return "the ID token of the person's sign-in", nil },
			Client: authclient.RegisteredClient{Issuer: "https://id.example.com", ClientID: "notebook",
				ClientSecret: "read from where the app keeps secrets"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = client.HTTPClient()
}
