package keyringstore_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/authclient/keyringstore"
)

// A program that leaves its logins to the system's keyring. A real one takes
// os.UserConfigDir. Without a keyring, calls fail: the program decides what then.
func Example() {
	config, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(config) }()
	store, err := keyringstore.New(keyringstore.Options{Service: "notes", LockDir: filepath.Join(config, "notes", "locks")})
	if err != nil {
		log.Fatal(err)
	}
	_, err = authclient.New(authclient.Options{Server: "https://mcp.example.com/mcp", Store: store, Authorizer: &authclient.Loopback{}})
	fmt.Println("ready:", err == nil)
	// Output: ready: true
}
