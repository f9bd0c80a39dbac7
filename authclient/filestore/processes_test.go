//go:build unix

package filestore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/authclient/filestore"
	"github.com/ostiary-auth/ostiary/internal/config"
	grants "github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/test/testkit/site"
)

// serverVariable is the MCP server that runClient calls.
const serverVariable = "OSTIARY_FILESTORE_SERVER"

// runClient is a program with a client of its own on the shared directory. For each
// line on its standard input, which is the time, it prints a token for that time.
func runClient(dir string) error {
	s, err := filestore.New(dir)
	if err != nil {
		return err
	}
	s.OnStep(die)
	var now time.Time
	c, err := authclient.New(authclient.Options{Server: os.Getenv(serverVariable), Store: s, Now: func() time.Time { return now }})
	if err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if now, err = time.Parse(time.RFC3339, in.Text()); err != nil {
			return err
		}
		token, err := c.TokenSource(context.Background()).Token()
		if err != nil {
			return err
		}
		fmt.Println(token.AccessToken)
	}
	return nil
}

// process is a runClient that runs.
type process struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

func startProcess(t *testing.T, dir, server string) *process {
	t.Helper()
	cmd := again(t, "client", dir, serverVariable+"="+server)
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // its end
		if err := cmd.Wait(); err != nil {
			t.Errorf("a process: %v", err)
		}
	})
	return &process{in, bufio.NewScanner(out)}
}

// Eight processes on one login, told to refresh at the same moment: one of them asks,
// with a token that was never used before, and all have the answer. The server takes
// no token twice: its window for retries is closed.
func TestC6_EightProcesses(t *testing.T) {
	t.Parallel()
	rounds := 10
	if os.Getenv("OSTIARY_SOAK") != "" {
		rounds = 100
	}
	s := site.Start(t, func(c *config.Config) { c.RefreshRetryWindow = 0 })
	dir := t.TempDir() + "/tokens"
	store := newStore(t, dir)
	if err := s.Client(func(o *authclient.Options) { o.Store = store }).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	var processes []*process
	for range 8 {
		processes = append(processes, startProcess(t, dir, s.URL))
	}
	earlier := map[string]bool{}
	for round := range rounds {
		s.Server.Clock.Advance(11 * time.Minute)
		before := s.Requests("POST /token")
		tokens := tokensOf(t, processes, s.Server.Clock.Now())
		if len(tokens) != 1 {
			t.Fatalf("round %d: %d different tokens", round, len(tokens))
		}
		if n := s.Requests("POST /token") - before; n != 1 {
			t.Errorf("round %d: %d requests for tokens, want 1", round, n)
		}
		for token := range tokens {
			if earlier[token] || !accepted(t, s.URL, token) {
				t.Errorf("round %d: seen before: %t; accepted: %t", round, earlier[token], accepted(t, s.URL, token))
			}
			earlier[token] = true
		}
	}
	list, err := s.Server.DB.ListGrants(t.Context(), grants.Filter{})
	if err != nil || len(list) != 1 || list[0].Generation != rounds+1 || !list[0].EndedAt.IsZero() {
		t.Errorf("grants = %+v, %v, want one, alive, of generation %d", list, err, rounds+1)
	}
	if s.Asked() != 1 {
		t.Errorf("the person was asked %d times", s.Asked())
	}
}

// A process that dies between the server's answer and the disk takes the rotated token
// with it. The next one sends the old token again, and Ostiary answers a retry with
// the same successor: nobody logs in anew.
func TestC6_KilledBeforeTheRotatedTokenIsSaved(t *testing.T) {
	t.Parallel()
	s := site.Start(t)
	dir := t.TempDir() + "/tokens"
	store := newStore(t, dir)
	if err := s.Client(func(o *authclient.Options) { o.Store = store }).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Server.Clock.Advance(11 * time.Minute)
	before := s.Requests("POST /token")
	victim := again(t, "client", dir, serverVariable+"="+s.URL, stepVariable+"=rename")
	victim.Stdin = strings.NewReader(s.Server.Clock.Now().Format(time.RFC3339) + "\n")
	if out, err := victim.Output(); !isKilled(err) || len(out) > 0 {
		t.Fatalf("the process ended with %v after it printed %q", err, out)
	}
	if n := s.Requests("POST /token") - before; n != 1 {
		t.Fatalf("the process asked for tokens %d times", n)
	}
	tokens := tokensOf(t, []*process{startProcess(t, dir, s.URL)}, s.Server.Clock.Now())
	for token := range tokens {
		if !accepted(t, s.URL, token) {
			t.Error("the server refuses the next process's token")
		}
	}
	list, err := s.Server.DB.ListGrants(t.Context(), grants.Filter{})
	if err != nil || len(list) != 1 || list[0].Generation != 2 || !list[0].EndedAt.IsZero() || s.Asked() != 1 {
		t.Errorf("grants = %+v, %v, asked %d times; want one, alive, of generation 2", list, err, s.Asked())
	}
}

// tokensOf tells all processes the time, at once, and returns what they print.
func tokensOf(t *testing.T, processes []*process, now time.Time) map[string]bool {
	t.Helper()
	var wg sync.WaitGroup
	start, tokens := make(chan struct{}), make([]string, len(processes))
	for i, p := range processes {
		wg.Go(func() {
			<-start
			if _, err := fmt.Fprintln(p.in, now.Format(time.RFC3339)); err != nil || !p.out.Scan() {
				t.Errorf("process %d: %v, %v", i, err, p.out.Err())
			}
			tokens[i] = p.out.Text()
		})
	}
	close(start)
	wg.Wait()
	different := map[string]bool{}
	for _, token := range tokens {
		different[token] = true
	}
	return different
}

// accepted reports whether the MCP server takes the token.
func accepted(t *testing.T, server, token string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden
}
