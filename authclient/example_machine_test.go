package authclient_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ostiary-auth/ostiary/authclient"
)

// A job that nobody watches is a client of its own. Its secret is sent to the issuer
// that it is configured with and nowhere else, whatever the MCP server says.
func ExampleClientCredentials() {
	server := demo()
	defer server.Close()
	client, err := authclient.New(authclient.Options{
		Server: server.URL + "/mcp",
		Machine: &authclient.ClientCredentials{Client: authclient.RegisteredClient{
			Issuer: server.URL, ClientID: "nightly-report", ClientSecret: "from your secret store",
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

// A client with a key has no secret that could leak: it signs an assertion each time
// (private_key_jwt). The key may be in a device, too: Signer is any crypto.Signer, and
// ParseSigningKey reads one from a file.
func ExampleSigningKey() {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	machine := &authclient.ClientCredentials{Client: authclient.RegisteredClient{
		Issuer: "https://auth.example.com", ClientID: "nightly-report", Key: &authclient.SigningKey{ID: "2026-11", Signer: private}}}
	_, err = authclient.New(authclient.Options{Server: "https://mcp.example.com/mcp", Machine: machine})
	fmt.Println(err)
	// Output: <nil>
}

// A workload that its platform gives a token to (Kubernetes, a cloud, a build service)
// needs no credential at all: the token, whose audience is the issuer, is exchanged.
func ExampleTokenFile() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "token") // as a projected volume has it
	if err := os.WriteFile(file, []byte("eyJ…\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	workload := &authclient.Workload{Issuer: "https://auth.example.com", Token: authclient.TokenFile(file)}
	token, err := workload.Token(context.Background()) // read again each time, as platforms renew it
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(token, len(token.Reveal()) > 0)
	// Output: [redacted] true
}
