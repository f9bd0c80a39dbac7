package kill

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/test/testkit"
	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

const (
	verifier    = "kill-kill-kill-kill-kill-kill-kill-kill-kill-1"
	redirectURI = "https://app.example.net/cb"
	resourceURI = "https://mcp.example.net/files"
	email       = "ada@example.com"
	password    = "correct horse battery staple"

	chains = 6 // grants refreshed in parallel
	pairs  = 2 // requests in flight with the same token
	stock  = 3 // codes whose redemption is sent just before the kill
)

func TestMain(m *testing.M) {
	code := m.Run()
	launch.Cleanup()
	os.Exit(code)
}

// rounds is how often the server is killed on each database.
func rounds() int {
	if os.Getenv("OSTIARY_SOAK") != "" {
		return 200
	}
	return 10
}

func TestKill(t *testing.T) {
	for name, database := range map[string]func(testing.TB) string{
		"sqlite":   func(testing.TB) string { return "" },
		"postgres": testkit.EmptyPostgresURL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newLoop(t, database(t)).run()
		})
	}
}

// loop is one server under load.
type loop struct {
	t      *testing.T
	server *launch.Ostiary
	client string
	http   *http.Client
	chains []*chain
	person *testkit.Person

	mu       sync.Mutex
	answers  map[int]int // by status
	kills    int
	codes    int      // redeemed under load
	unsure   []string // codes whose redemption got no answer
	redeemed int
	dead     int
}

// chain is one grant's refresh tokens, as a careful client keeps them.
type chain struct {
	token      string
	successors map[string]string // of every token that was ever answered
}

func newLoop(t *testing.T, database string) *loop {
	t.Helper()
	l := &loop{t: t, server: launch.ServeOstiary(t, database), answers: map[int]int{},
		http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
	l.server.AddUser(t, email, password)
	l.server.Run(t, "", "resource", "add", resourceURI, "--name", "Files", "--scope", "files:read=See your files")
	out := l.server.Run(t, "", "client", "add", "--name", "Kill", "--redirect-uri", redirectURI, "--auth", "none", "--json")
	var added struct {
		ClientID string `json:"client_id"`
	}
	if err := json.Unmarshal([]byte(out), &added); err != nil || added.ClientID == "" {
		t.Fatalf("client add: %v\n%s", err, out)
	}
	l.client = added.ClientID
	l.person = testkit.NewPerson(email, password, nil)
	for range chains {
		code, err := l.code(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		status, got, err := l.token(t.Context(), l.redemption(code))
		if err != nil || status != http.StatusOK {
			t.Fatalf("first tokens: %d %v %v", status, got, err)
		}
		l.chains = append(l.chains, &chain{token: got.RefreshToken, successors: map[string]string{}})
	}
	return l
}

// code gets an authorization code: the first time through the pages, later at
// once, since the operator's client is remembered.
func (l *loop) code(ctx context.Context) (string, error) {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{"response_type": {"code"}, "client_id": {l.client}, "redirect_uri": {redirectURI}, "state": {"s"},
		"resource": {resourceURI}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}
	left, err := l.person.Authorize(ctx, l.server.Issuer+"/authorize?"+q.Encode())
	if err != nil {
		return "", err
	}
	return left.Query().Get("code"), nil
}

func (l *loop) redemption(code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "client_id": {l.client}, "code": {code},
		"redirect_uri": {redirectURI}, "code_verifier": {verifier}}
}

type tokenAnswer struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	Error        string `json:"error"`
}

// token sends one token request; err means that no whole answer came.
func (l *loop) token(ctx context.Context, form url.Values) (int, tokenAnswer, error) {
	var got tokenAnswer
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.server.Issuer+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		return 0, got, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := l.http.Do(req)
	if err != nil {
		return 0, got, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, got, err
	}
	l.mu.Lock()
	l.answers[resp.StatusCode]++
	l.mu.Unlock()
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&got); err != nil {
		return resp.StatusCode, got, fmt.Errorf("answer %d is not JSON: %w", resp.StatusCode, err)
	}
	if resp.StatusCode >= 500 && resp.StatusCode != http.StatusServiceUnavailable {
		l.t.Errorf("answer %d %s, want no 5xx but 503", resp.StatusCode, got.Error)
	}
	return resp.StatusCode, got, nil
}

func (l *loop) run() {
	for range rounds() {
		ctx, cancel := context.WithCancel(l.t.Context())
		codes := l.stock(ctx)
		var load sync.WaitGroup
		for _, c := range l.chains {
			load.Go(func() { l.refreshUntil(ctx, c) })
		}
		load.Go(func() { l.redeemUntil(ctx) })
		wait(ctx, time.Duration(50+rand.IntN(250))*time.Millisecond)
		for _, code := range codes {
			load.Go(func() { l.redeem(ctx, code) })
		}
		wait(ctx, time.Duration(rand.IntN(8000))*time.Microsecond)
		l.server.Kill()
		l.kills++
		cancel()
		load.Wait()
		l.server.Serve(l.t)
		l.check()
		if l.t.Failed() {
			return
		}
	}
	l.t.Logf("%d kills; answers by status %v; %d codes redeemed under load; of those in flight at a kill %d could be redeemed afterwards and %d were dead",
		l.kills, l.answers, l.codes, l.redeemed, l.dead)
	if l.redeemed+l.dead == 0 {
		l.t.Error("no code was ever in flight at a kill, so nothing was learned of them")
	}
}

// wait waits for d of real time: the load runs meanwhile.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (l *loop) refreshUntil(ctx context.Context, c *chain) {
	for ctx.Err() == nil {
		l.refresh(ctx, c)
	}
}

// refresh sends the chain's token twice at once, as impatient clients do, and
// reports whether an answer came. A token has one successor, however often it is
// sent; an answer that never came leaves the token in place.
func (l *loop) refresh(ctx context.Context, c *chain) (answered bool) {
	token := c.token
	answers := make([]tokenAnswer, pairs)
	var twins sync.WaitGroup
	for i := range answers {
		twins.Go(func() {
			status, got, err := l.token(ctx, url.Values{"grant_type": {"refresh_token"}, "client_id": {l.client}, "refresh_token": {token}})
			switch {
			case err != nil, status == http.StatusServiceUnavailable:
			case status != http.StatusOK:
				l.t.Errorf("refresh: %d %s: the grant is lost", status, got.Error)
			default:
				answers[i] = got
			}
		})
	}
	twins.Wait()
	for _, got := range answers {
		if got.RefreshToken == "" {
			continue
		}
		if before, seen := c.successors[token]; seen && before != got.RefreshToken {
			l.t.Error("one refresh token got two successors")
		}
		c.successors[token], c.token, answered = got.RefreshToken, got.RefreshToken, true
	}
	return answered
}

// stock gets codes to be redeemed at the moment of the kill. The first asks for
// consent again, since the reuse that check tried took the remembered one away.
func (l *loop) stock(ctx context.Context) (codes []string) {
	for range stock {
		code, err := l.code(ctx)
		if err != nil || code == "" {
			l.t.Errorf("code before the kill: %q, %v", code, err)
		}
		codes = append(codes, code)
	}
	return codes
}

// redeemUntil gets codes and redeems them.
func (l *loop) redeemUntil(ctx context.Context) {
	for ctx.Err() == nil {
		if code, err := l.code(ctx); err == nil && code != "" {
			l.redeem(ctx, code)
		}
	}
}

// redeem redeems a code that was never sent, and keeps it when no answer came.
func (l *loop) redeem(ctx context.Context, code string) {
	status, got, err := l.token(ctx, l.redemption(code))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil || status == http.StatusServiceUnavailable:
		l.unsure = append(l.unsure, code)
	case status != http.StatusOK:
		l.t.Errorf("a fresh code was answered %d %s", status, got.Error)
	default:
		l.codes++
	}
}

// check looks at what the kill left behind.
func (l *loop) check() {
	ctx, unsure := l.t.Context(), l.unsure
	l.unsure = nil
	for _, c := range l.chains {
		if err := l.settle(ctx, c); err != nil {
			l.t.Error(err)
		}
	}
	for _, code := range unsure {
		status, got, err := l.token(ctx, l.redemption(code))
		switch {
		case err != nil:
			l.t.Errorf("redeem after the kill: %v", err)
		case status == http.StatusOK:
			l.redeemed++
			// used once: the second use is refused and ends the grant
			if again, _, err := l.token(ctx, l.redemption(code)); err != nil || again != http.StatusBadRequest {
				l.t.Errorf("a used code was answered %d, %v", again, err)
			}
		case got.Error == "invalid_grant":
			l.dead++
		default:
			l.t.Errorf("redeem after the kill: %d %s", status, got.Error)
		}
	}
}

// settle refreshes a chain once more: the token that its client holds works.
func (l *loop) settle(ctx context.Context, c *chain) error {
	for range 5 {
		if l.refresh(ctx, c) {
			return nil
		}
		if l.t.Failed() {
			break
		}
	}
	return errors.New("a grant did not survive the kill")
}
