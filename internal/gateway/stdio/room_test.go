//go:build unix

package stdio_test

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/gateway/stdio"
)

// initialize asks for a session of subject, and may be refused.
func (f *fixture) initialize(subject string) *http.Response {
	f.t.Helper()
	c := &client{f: f, token: f.token(subject), version: "2025-11-25"}
	return c.post(`{"jsonrpc":"2.0","id":"i","method":"initialize"}`)
}

// alive reports whether the session is there still.
func (c *client) alive() bool {
	c.f.t.Helper()
	return c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`).StatusCode == http.StatusOK
}

// refused wants this status, and when to come back, within most seconds.
func refused(t *testing.T, resp *http.Response, status, most int) {
	t.Helper()
	wait, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if m := only(t, resp); resp.StatusCode != status || m.Error == nil || err != nil || wait < 1 || wait > most {
		t.Errorf("answer = %s, Retry-After %q, %+v; want %d and at most %d seconds", resp.Status, resp.Header.Get("Retry-After"), m.Error, status, most)
	}
}

// One subject cannot have programs started as fast as he asks: neither by sessions
// that each end the one before, nor by requests without any.
func TestStartsOfOneSubjectAreLimited(t *testing.T) {
	t.Parallel()
	f := newFixture(t, []string{"modern"}, func(o *stdio.Options) { o.MaxPerSubject, o.StartsPerMinute = 1, 2 })
	f.begin("u_1")
	last := f.begin("u_1")
	for range 3 {
		refused(t, f.initialize("u_1"), http.StatusTooManyRequests, 30)
	}
	modern := f.modern("u_1")
	refused(t, modern.do(modern.ask(t.Context(), `"i"`, "pid", "x", "")), http.StatusTooManyRequests, 30)
	if !last.alive() || f.bridge.Children() != 1 {
		t.Errorf("%d children; want the last session, for which no other came", f.bridge.Children())
	}
	if other := f.begin("u_2"); !other.alive() {
		t.Error("another subject has no session")
	}
	f.advance(31 * time.Second)
	f.begin("u_1")
	refused(t, f.initialize("u_1"), http.StatusTooManyRequests, 30)
}

// A full bridge does not turn strangers away for what nobody uses.
func TestFullBridgeMakesRoom(t *testing.T) {
	t.Parallel()
	f := newFixture(t, []string{"hand"}, func(o *stdio.Options) { o.MaxChildren, o.MaxPerSubject = 5, 3 })
	begin := func(subject string) *client {
		f.advance(time.Second) // each is used later than the one before
		return f.begin(subject)
	}
	rare, used, older, newer, pair := begin("u_rare"), begin("u_many"), begin("u_many"), begin("u_many"), begin("u_pair")
	used.listen()
	var strangers []*client
	for _, tt := range []struct {
		stranger string
		ends     *client
		stay     []*client
	}{
		{"u_a", older, []*client{used, newer, rare, pair}}, // of who has three, the one that rested longest
		{"u_b", newer, []*client{used, rare, pair}},        // of who has two, the one that is not used
	} {
		s := begin(tt.stranger)
		strangers = append(strangers, s)
		if tt.ends.alive() {
			t.Errorf("%s: the wrong session has ended", tt.stranger)
		}
		for i, c := range tt.stay {
			if !c.alive() {
				t.Errorf("%s: session %d has ended", tt.stranger, i)
			}
		}
		if !s.alive() || f.bridge.Children() != 5 {
			t.Errorf("%s: %d children", tt.stranger, f.bridge.Children())
		}
	}
	begin("u_c") // all have one: the one that rested longest
	if strangers[0].alive() || !strangers[1].alive() || !rare.alive() || !pair.alive() || !used.alive() {
		t.Error("u_c: the wrong session has ended")
	}
	f.log.await(t, "somebody else had no room")
}

// What is in use ends for nobody, and who has as many as others takes none of theirs.
func TestFullBridgeInUse(t *testing.T) {
	t.Parallel()
	f := newFixture(t, []string{"hand"}, func(o *stdio.Options) { o.MaxChildren, o.MaxPerSubject = 2, 2 })
	first, second := f.begin("u_1"), f.begin("u_2")
	first.listen()
	refused(t, f.initialize("u_1"), http.StatusServiceUnavailable, 10)
	if !second.alive() {
		t.Error("u_2 has lost his only session to who has one")
	}
	second.listen()
	refused(t, f.initialize("u_3"), http.StatusServiceUnavailable, 10)
	if !first.alive() || !second.alive() {
		t.Error("a session in use has ended")
	}
}

// Strangers who come together do not wait for one another: room is made for each.
func TestRoomIsMadeForEachStranger(t *testing.T) {
	t.Parallel()
	l := lifeline(t)
	f := newFixture(t, []string{"deaf", l.Addr().String()}, func(o *stdio.Options) {
		o.MaxChildren, o.MaxPerSubject, o.StopTimeout = 2, 2, time.Hour
	})
	f.begin("u_1")
	f.begin("u_2")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, subject := range []string{"u_3", "u_4"} {
		c := &client{f: f, token: f.token(subject), version: "2025-11-25"}
		req := c.request(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":"i","method":"initialize"}`)
		wg.Go(func() {
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_ = resp.Body.Close()
				t.Errorf("initialize = %s while two programs did not end", resp.Status)
			}
		})
	}
	if first, second := alive(t, l), alive(t, l); first.pid == second.pid { // they connect once they are told to end
		t.Error("one program alone is to end")
	}
	cancel()
	wg.Wait()
	_ = f.bridge.Close(ctx) // kills them
}
