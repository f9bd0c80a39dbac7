package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/authclient/filestore"
)

// A program that keeps its logins. A real one takes os.UserConfigDir.
func Example() {
	config, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(config) }()
	store, err := filestore.New(filepath.Join(config, "notes", "tokens"))
	if err != nil {
		log.Fatal(err)
	}
	c, err := authclient.New(authclient.Options{Server: "https://mcp.example.com/mcp", Store: store, Authorizer: &authclient.Loopback{}})
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Status(context.Background())
	fmt.Println("not logged in yet:", errors.Is(err, authclient.ErrNotFound))
	// Output: not logged in yet: true
}
