package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// D2: serve needs nothing but a home directory, and keeps what it makes there from
// others.
func TestD02_ServeFromAnEmptyHome(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	out, log := newLockedBuffer(), newLockedBuffer()
	code := make(chan int, 1)
	go func() {
		code <- newCLI([]string{"HOME=" + home}, strings.NewReader(""), out, log).run(ctx,
			[]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"})
	}()
	admin := out.await(t, `health +(http://\S+)/healthz\n`)
	if status, body := get(t, http.DefaultClient, admin+"/readyz"); status != 200 {
		t.Errorf("GET /readyz = %d %s", status, body)
	}
	state := filepath.Join(home, ".local", "state", "ostiary")
	if database := out.await(t, `database +(\S+)\n`); database != filepath.Join(state, "ostiary.db") {
		t.Errorf("database %s, want it in %s", database, state)
	}
	// the database has the mode of the umask that main sets
	for name, want := range map[string]os.FileMode{"": 0o700, "secret.key": 0o600} {
		info, err := os.Stat(filepath.Join(state, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%q has mode %o, want %o", name, got, want)
		}
	}
	cancel()
	if got := <-code; got != exitDone {
		t.Errorf("exit code %d after an interrupt, want 0; log:\n%s", got, log)
	}
}
