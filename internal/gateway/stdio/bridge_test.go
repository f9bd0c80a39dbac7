//go:build unix

package stdio_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/gateway/stdio"
	"github.com/ostiary-auth/ostiary/resourceserver"
)

// What the client writes is what the child reads, whatever the method; what the
// child writes is what the client reads.
func TestMessagesPassUnchanged(t *testing.T) {
	t.Parallel()
	c := newFixture(t, []string{"hand"}).begin("u_1")
	for _, tt := range []struct{ name, body string }{
		{"a method that no SDK knows", `{"method":"x/y","id":"a","jsonrpc":"2.0","params":{"b":1e2,"a":"<&>","z":12345678901234567890},"later":true}`},
		{"a task", `{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"t-1"}}`},
		{"params by position", `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":[1,2]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp := c.post(tt.body)
			if got := resp.Header.Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type = %q, want plain JSON for what is one message", got)
			}
			var got struct{ Heard string }
			if err := json.Unmarshal(only(t, resp).Result, &got); err != nil || got.Heard != tt.body {
				t.Errorf("the child heard %q, want %q (%v)", got.Heard, tt.body, err)
			}
		})
	}
	t.Run("an error", func(t *testing.T) {
		m := only(t, c.post(`{"jsonrpc":"2.0","id":9,"method":"fail"}`))
		if m.Error == nil || m.Error.Code != -32601 || string(m.Error.Data) != `{"x":1}` || string(m.ID) != "9" {
			t.Errorf("answer = %+v", m)
		}
	})
	t.Run("line breaks between tokens", func(t *testing.T) {
		var got struct{ Heard string }
		_ = json.Unmarshal(only(t, c.post("{\"jsonrpc\":\"2.0\",\r\n \"id\":1,\n\"method\":\"x\"}")).Result, &got)
		if got.Heard != `{"jsonrpc":"2.0","id":1,"method":"x"}` {
			t.Errorf("the child heard %q", got.Heard)
		}
	})
	t.Run("a notification and an answer", func(t *testing.T) {
		for _, body := range []string{`{"jsonrpc":"2.0","method":"notifications/x","params":{"n":41}}`, `{"jsonrpc":"2.0","id":"q-9","result":{"n":42}}`} {
			if resp := c.post(body); resp.StatusCode != http.StatusAccepted {
				t.Errorf("%s = %s", body, resp.Status)
			}
		}
		c.f.log.await(t, `{\"n\":41}`)
		c.f.log.await(t, "q-9")
	})
	t.Run("a batch of 2025-03-26", func(t *testing.T) {
		list := messages(t, c.post(`[{"jsonrpc":"2.0","id":1,"method":"pid"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":2,"method":"pid"}]`))
		if len(list) != 2 || string(list[0].ID) != "1" || string(list[1].ID) != "2" {
			t.Errorf("answers = %+v", list)
		}
	})
}

// A request of the server reaches the client on the stream of the only request
// that is open, or by GET, and is kept for whoever comes first when nobody listens.
func TestServerRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t, []string{"hand"})
	t.Run("while one request is open", func(t *testing.T) {
		list := messages(t, f.begin("u_1").post(`{"jsonrpc":"2.0","id":1,"method":"ask"}`))
		if len(list) != 2 || list[0].Method != "roots/list" || string(list[0].ID) != `"q-1"` || string(list[1].ID) != "1" {
			t.Errorf("messages = %+v", list)
		}
	})
	t.Run("by GET while two are", func(t *testing.T) {
		c := f.begin("u_2")
		in := bufio.NewReader(c.listen().Body)
		hanging := bufio.NewReader(c.post(`{"jsonrpc":"2.0","id":1,"method":"hang"}`).Body)
		next(t, hanging)
		asked := messages(t, c.post(`{"jsonrpc":"2.0","id":2,"method":"ask"}`))
		if got := next(t, in); !strings.Contains(got, "roots/list") || len(asked) != 1 {
			t.Errorf("GET got %s, POST %+v", got, asked)
		}
	})
	t.Run("kept until somebody listens", func(t *testing.T) {
		c := f.begin("u_3")
		ctx, cancel := context.WithCancel(t.Context())
		resp := c.do(c.request(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"hang"}`))
		next(t, bufio.NewReader(resp.Body))
		cancel()
		_ = resp.Body.Close()
		in := bufio.NewReader(c.listen().Body)
		if list := messages(t, c.post(`{"jsonrpc":"2.0","id":2,"method":"ask"}`)); len(list) != 2 {
			// The bridge may not have noticed yet that the first request is gone.
			if got := next(t, in); !strings.Contains(got, "roots/list") {
				t.Errorf("nobody was asked: GET %s, POST %+v", got, list)
			}
		}
	})
	t.Run("a second GET takes over", func(t *testing.T) {
		c := f.begin("u_4")
		first := c.listen()
		second := bufio.NewReader(c.listen().Body)
		if body := read(t, first); strings.Contains(body, "data:") {
			t.Errorf("the first stream had %q", body)
		}
		hanging := bufio.NewReader(c.post(`{"jsonrpc":"2.0","id":1,"method":"hang"}`).Body)
		next(t, hanging)
		only(t, c.post(`{"jsonrpc":"2.0","id":2,"method":"ask"}`))
		if got := next(t, second); !strings.Contains(got, "roots/list") {
			t.Errorf("the second stream got %s", got)
		}
	})
}

func TestSessions(t *testing.T) {
	t.Parallel()
	f := newFixture(t, []string{"hand"})
	t.Run("DELETE ends it", func(t *testing.T) {
		c := f.begin("u_1")
		if resp := c.send(http.MethodDelete, ""); resp.StatusCode != http.StatusNoContent {
			t.Errorf("DELETE = %s", resp.Status)
		}
		if resp := c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); resp.StatusCode != http.StatusNotFound || only(t, resp).Error.Code != -32001 {
			t.Errorf("after DELETE = %s, want 404", resp.Status)
		}
	})
	t.Run("JW-25 somebody else's id", func(t *testing.T) {
		c := f.begin("u_1")
		thief := &client{f: f, token: f.token("u_2"), session: c.session, version: c.version}
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			body := map[string]string{http.MethodPost: `{"jsonrpc":"2.0","id":1,"method":"ping"}`}[method]
			if resp := thief.send(method, body); resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s = %s, want 404", method, resp.Status)
			}
		}
		id, _, _ := strings.Cut(c.session, ".")
		owner := resourceserver.Token{Issuer: issuer, Subject: "u_1", ClientID: "c_1"}
		for name, change := range map[string]func(*resourceserver.Token){
			"subject": func(t *resourceserver.Token) { t.Subject = "u_2" }, "issuer": func(t *resourceserver.Token) { t.Issuer = "https://other.example" }} {
			other := owner
			change(&other)
			if f.bridge.Finds(&other, id) {
				t.Errorf("another %s reaches the session without the middleware's tag", name)
			}
		}
		for _, clientID := range []string{"c_1", "c_2"} { // c_2 is the app, registered anew
			if owner.ClientID = clientID; !f.bridge.Finds(&owner, id) {
				t.Errorf("its owner does not reach the session as %s", clientID)
			}
		}
	})
	t.Run("each has a child of its own", func(t *testing.T) {
		if a, b := f.begin("u_3").call("pid", ""), f.begin("u_3").call("pid", ""); string(a) == string(b) {
			t.Errorf("both sessions are process %s", a)
		}
	})
	t.Run("a request before initialize", func(t *testing.T) {
		c := &client{f: f, token: f.token("u_4"), version: "2025-06-18"}
		if resp := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("POST = %s, want 400", resp.Status)
		}
	})
	t.Run("an id in use", func(t *testing.T) {
		c := f.begin("u_5")
		next(t, bufio.NewReader(c.post(`{"jsonrpc":"2.0","id":1,"method":"hang"}`).Body))
		if resp := c.post(`{"jsonrpc":"2.0","id":1,"method":"pid"}`); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("POST = %s, want 400", resp.Status)
		}
	})
	t.Run("too many unanswered requests", func(t *testing.T) {
		c := f.begin("u_7")
		batch := func(first int) *http.Response {
			var calls []string
			for i := range 100 {
				calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hang"}`, first+i))
			}
			return c.post("[" + strings.Join(calls, ",") + "]")
		}
		for i := range 2 {
			next(t, bufio.NewReader(batch(1000+i*100).Body))
		}
		if resp := batch(2000); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("the third hundred = %s, want 503", resp.Status)
		}
		c.call("pid", "")
	})
	t.Run("a cancelled request ends", func(t *testing.T) {
		c := f.begin("u_6")
		resp := c.post(`{"jsonrpc":"2.0","id":1,"method":"hang"}`)
		in := bufio.NewReader(resp.Body)
		next(t, in)
		c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		rest, err := in.ReadString(0)
		if strings.Contains(rest, "data:") || err == nil {
			t.Errorf("the stream went on with %q, %v", rest, err)
		}
	})
}

func TestRequestsAreChecked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, []string{"hand"}, func(o *stdio.Options) { o.MaxMessage = 4096 })
	c := f.begin("u_1")
	for _, tt := range []struct {
		name, method, body string
		header             [2]string
		want               int
	}{
		{name: "not JSON", body: `{`, want: 400},
		{name: "trailing data", body: `{"jsonrpc":"2.0","id":1,"method":"pid"}{}`, want: 400},
		{name: "not UTF-8", body: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", want: 400},
		{name: "empty batch", body: `[]`, want: 400},
		{name: "a fraction as id", body: `{"jsonrpc":"2.0","id":1.5,"method":"pid"}`, want: 400},
		{name: "an id that would be rounded", body: `{"jsonrpc":"2.0","id":9007199254740993,"method":"pid"}`, want: 400},
		{name: "not JSON-RPC 2.0", body: `{"id":1,"method":"pid"}`, want: 400},
		{name: "too large", body: `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 4096) + `"}`, want: 413},
		{name: "another type", body: `{"jsonrpc":"2.0","id":1,"method":"pid"}`, header: [2]string{"Content-Type", "text/plain"}, want: 415},
		{name: "a client that reads no streams", body: `{"jsonrpc":"2.0","id":1,"method":"pid"}`, header: [2]string{"Accept", "application/json"}, want: 406},
		{name: "GET for JSON", method: http.MethodGet, header: [2]string{"Accept", "application/json"}, want: 406},
		{name: "PUT", method: http.MethodPut, body: `{}`, want: 405},
		{name: "fine", body: `{"jsonrpc":"2.0","id":1,"method":"pid"}`, want: 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			method := tt.method
			if method == "" {
				method = http.MethodPost
			}
			req := c.request(t.Context(), method, tt.body)
			if tt.header[0] != "" {
				req.Header.Set(tt.header[0], tt.header[1])
			}
			resp := c.do(req)
			if body := read(t, resp); resp.StatusCode != tt.want || !strings.Contains(body, `"jsonrpc":"2.0"`) {
				t.Errorf("status = %s, want %d; %s", resp.Status, tt.want, body)
			}
		})
	}
}

func TestTooManySessions(t *testing.T) {
	t.Parallel()
	t.Run("of everybody", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, []string{"hand"}, func(o *stdio.Options) { o.MaxChildren, o.MaxPerSubject = 5, 2 })
		var mu sync.Mutex
		status, most := map[int]int{}, 0
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				c := &client{f: f, token: f.token("u_" + strconv.Itoa(i)), version: "2025-11-25"}
				req := c.request(t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":"i","method":"initialize"}`)
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = resp.Body.Close() }()
				mu.Lock()
				defer mu.Unlock()
				status[resp.StatusCode]++
				most = max(most, f.bridge.Children())
			})
		}
		wg.Wait()
		// A stranger ends what nobody uses, and only then.
		if status[200] < 5 || status[200]+status[503] != 50 || most > 5 || f.bridge.Children() != 5 {
			t.Errorf("status = %v, %d children, at most %d; want five sessions", status, f.bridge.Children(), most)
		}
	})
	t.Run("of one subject that uses them", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, []string{"hand"}, func(o *stdio.Options) { o.MaxChildren, o.MaxPerSubject = 5, 2 })
		for range 2 {
			f.begin("u_1").listen()
		}
		greedy := &client{f: f, token: f.token("u_1"), version: "2025-11-25"}
		if resp := greedy.post(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a third session = %s, want 503", resp.Status)
		}
		f.begin("u_2") // others find room
	})
	t.Run("of one subject that forgets them", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, []string{"hand"}, func(o *stdio.Options) { o.MaxPerSubject = 2 })
		first := f.begin("u_1")
		for range 4 {
			f.begin("u_1")
			if n := f.bridge.Children(); n > 2 {
				t.Fatalf("%d children", n)
			}
		}
		if resp := first.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); resp.StatusCode != http.StatusNotFound {
			t.Errorf("the forgotten session = %s, want 404", resp.Status)
		}
	})
}

func TestChildEndsWithTokenAndIdle(t *testing.T) {
	t.Parallel()
	gone := func(t *testing.T, c *client) {
		t.Helper()
		c.token = c.f.token("u_1")
		if resp := c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); resp.StatusCode != http.StatusNotFound {
			t.Errorf("afterwards = %s, want 404", resp.Status)
		}
	}
	t.Run("no token was seen again", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, []string{"hand"}, func(o *stdio.Options) { o.Idle = time.Hour })
		c := f.begin("u_1")
		f.advance(10*time.Minute + 30*time.Second)
		f.bridge.Sweep()
		if f.bridge.Children() != 1 {
			t.Fatal("the child was ended within the grace")
		}
		f.advance(time.Minute)
		f.bridge.Sweep()
		gone(t, c)
		f.log.await(t, "its last token has expired")
	})
	t.Run("a new token keeps it", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, []string{"hand"}, func(o *stdio.Options) { o.Idle = time.Hour })
		c := f.begin("u_1")
		pid := string(c.call("pid", ""))
		for range 3 {
			f.advance(9 * time.Minute)
			c.token = f.token("u_1")
			if now := string(c.call("pid", "")); now != pid {
				t.Fatalf("process %s became %s", pid, now)
			}
			f.bridge.Sweep()
		}
		f.advance(12 * time.Minute)
		f.bridge.Sweep()
		gone(t, c)
	})
	t.Run("a call in progress is answered", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, []string{"hand"})
		c := f.begin("u_1")
		req := c.request(t.Context(), http.MethodPost, `[{"jsonrpc":"2.0","id":5,"method":"hang"}]`)
		in := bufio.NewReader(c.do(req).Body)
		next(t, in)
		f.advance(9 * time.Minute) // the stream itself would be cut at exp
		c.send(http.MethodDelete, "")
		if got := next(t, in); !strings.Contains(got, `"id":5`) || !strings.Contains(got, "has ended") {
			t.Errorf("the call got %s", got)
		}
	})
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, []string{"hand"}, func(o *stdio.Options) { o.Idle = 5 * time.Minute })
		listening, c := f.begin("u_1"), f.begin("u_1")
		listening.listen()
		f.advance(6 * time.Minute)
		f.bridge.Sweep()
		gone(t, c)
		if resp := listening.post(`{"jsonrpc":"2.0","id":1,"method":"pid"}`); resp.StatusCode != http.StatusOK {
			t.Errorf("who listens = %s, want 200", resp.Status)
		}
	})
}

func TestChildDies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, []string{"hand"})
	t.Run("kill -9", func(t *testing.T) {
		c := f.begin("u_1")
		stream := c.listen()
		pid, err := strconv.Atoi(string(c.call("pid", "")))
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(c.post(`{"jsonrpc":"2.0","id":"h","method":"hang"}`).Body)
		next(t, in)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if got := next(t, in); !strings.Contains(got, `"id":"h"`) || !strings.Contains(got, `"error"`) {
			t.Errorf("the open request got %s", got)
		}
		read(t, stream) // ends
		if resp := c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); resp.StatusCode != http.StatusNotFound {
			t.Errorf("afterwards = %s, want 404", resp.Status)
		}
		f.log.await(t, "signal: killed")
		f.begin("u_1")
	})
	t.Run("during a call", func(t *testing.T) {
		c := f.begin("u_2")
		if m := only(t, c.post(`{"jsonrpc":"2.0","id":1,"method":"exit"}`)); m.Error == nil || m.Error.Code != -32603 {
			t.Errorf("answer = %+v", m)
		}
		f.log.await(t, "exit status 3")
	})
	t.Run("at once", func(t *testing.T) {
		f := newFixture(t, []string{"crash"})
		c := &client{f: f, token: f.token("u_1"), version: "2025-11-25"}
		resp := c.post(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
		if resp.StatusCode != http.StatusBadGateway || resp.Header.Get("Mcp-Session-Id") != "" || only(t, resp).Error == nil {
			t.Errorf("initialize = %s", resp.Status)
		}
	})
	t.Run("the program is gone", func(t *testing.T) {
		file := t.TempDir() + "/server"
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		f := newFixture(t, nil, func(o *stdio.Options) { o.Command = []string{file} })
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		c := &client{f: f, token: f.token("u_1"), version: "2025-11-25"}
		if resp := c.post(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`); resp.StatusCode != http.StatusBadGateway || f.bridge.Children() != 0 {
			t.Errorf("initialize = %s, %d children", resp.Status, f.bridge.Children())
		}
	})
}

func TestGroupEndsWithChild(t *testing.T) {
	t.Parallel()
	t.Run("what it started", func(t *testing.T) {
		t.Parallel()
		l := lifeline(t)
		f := newFixture(t, []string{"hand"})
		c := f.begin("u_1")
		c.call("fork", l.Addr().String())
		grandchild := alive(t, l)
		c.send(http.MethodDelete, "")
		dead(t, grandchild)
		f.log.await(t, "its client has ended the session")
	})
	t.Run("what it started, when it is killed", func(t *testing.T) {
		t.Parallel()
		l := lifeline(t)
		c := newFixture(t, []string{"hand"}).begin("u_1")
		c.call("fork", l.Addr().String())
		grandchild := alive(t, l)
		pid, _ := strconv.Atoi(string(c.call("pid", "")))
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		dead(t, grandchild)
	})
	t.Run("a child that ignores SIGTERM", func(t *testing.T) {
		t.Parallel()
		l := lifeline(t)
		f := newFixture(t, []string{"deaf", l.Addr().String()}, func(o *stdio.Options) { o.StopTimeout = 50 * time.Millisecond })
		f.begin("u_1").send(http.MethodDelete, "")
		dead(t, alive(t, l)) // it connects once its input has ended
		f.log.await(t, "signal: killed")
	})
	t.Run("Close does not wait for longer than asked", func(t *testing.T) {
		t.Parallel()
		l := lifeline(t)
		f := newFixture(t, []string{"deaf", l.Addr().String()}, func(o *stdio.Options) { o.StopTimeout = time.Hour })
		f.begin("u_1")
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- f.bridge.Close(ctx) }()
		child := alive(t, l)
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("Close = %v", err)
		}
		dead(t, child)
		c := &client{f: f, token: f.token("u_1"), version: "2025-11-25"}
		if resp := c.post(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("after Close = %s, want 503", resp.Status)
		}
	})
}

// A gateway that is killed takes its children with it: not when some thread of it
// ends, and whatever they do with SIGTERM.
func TestChildrenDieWithGateway(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // elsewhere the end of its input is all that a child hears
	}
	l := lifeline(t)
	gateway := exec.Command(os.Args[0], asChild, "parent", l.Addr().String())
	if err := gateway.Start(); err != nil {
		t.Fatal(err)
	}
	child, parent := alive(t, l), alive(t, l)
	if child.pid == strconv.Itoa(gateway.Process.Pid) {
		child, parent = parent, child
	}
	if _, err := child.Write([]byte("still here?\n")); err != nil || child.says(t) != "still here?" {
		t.Fatal("the child has ended with a thread")
	}
	if err := gateway.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = gateway.Wait()
	dead(t, parent)
	dead(t, child)
}

// A child that never reads holds up nobody but who waits for it.
func TestChildThatNeverReads(t *testing.T) {
	t.Parallel()
	l := lifeline(t)
	f := newFixture(t, []string{"stuck", l.Addr().String()}, func(o *stdio.Options) { o.StopTimeout = 50 * time.Millisecond })
	c := &client{f: f, token: f.token("u_1"), version: "2025-11-25"}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	req := c.request(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":"`+strings.Repeat("x", 1<<20)+`"}}`)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		result <- err
	}()
	child := alive(t, l)
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("initialize = %v", err)
	}
	dead(t, child)
	f.log.await(t, "initialize did not succeed")
}

// It is not parallel: it counts what all the package leaves behind.
func TestNothingIsLeft(t *testing.T) {
	f := newFixture(t, []string{"hand"}, func(o *stdio.Options) { o.MaxPerSubject = 3 })
	var pids []int
	for range 3 {
		c := f.begin("u_1")
		pid, err := strconv.Atoi(string(c.call("pid", "")))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
		c.listen()
	}
	if own() < 3*4 {
		t.Fatalf("only %d goroutines of the bridge: they are not counted well", own())
	}
	if err := f.bridge.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) { // a zombie would still be there
			t.Errorf("process %d: %v, want none", pid, err)
		}
	}
	for deadline := time.Now().Add(time.Minute); own() > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines are left", own())
		}
	}
}

// own counts the goroutines that run the bridge's code, tests left out.
func own() (n int) {
	buf := make([]byte, 4<<20)
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "internal/gateway/stdio.") && !strings.Contains(g, "stdio_test.") {
			n++
		}
	}
	return n
}

func TestEnvironment(t *testing.T) {
	// Not parallel: it sets variables of this process.
	for name, value := range map[string]string{"OSTIARY_SECRET": "s3cret", "AWS_SECRET_ACCESS_KEY": "s3cret", "LC_TIME": "C.UTF-8",
		"NOTES_DIR": "/notes", "TZ": "UTC", "LANG": "() { :;}; echo s3cret"} {
		t.Setenv(name, value)
	}
	dup, err := syscall.Dup(1) // as if this process had been started with it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(dup) })
	dir := t.TempDir()
	f := newFixture(t, []string{"hand"}, func(o *stdio.Options) { o.Env, o.Dir = []string{"NOTES_DIR"}, dir })
	c := f.begin("u_1")
	var env []string
	if err := json.Unmarshal(c.call("environment", ""), &env); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NOTES_DIR=/notes", "LC_TIME=C.UTF-8", "TZ=UTC", "PATH=" + os.Getenv("PATH"),
		"MCP_GATEWAY_ISSUER=" + issuer, "MCP_GATEWAY_SUBJECT=u_1", "MCP_GATEWAY_CLIENT_ID=c_1"} {
		if !slices.Contains(env, want) {
			t.Errorf("no %s in %q", want, env)
		}
	}
	all := strings.Join(env, "\n")
	for _, leak := range []string{"OSTIARY_", "s3cret", c.token} {
		if strings.Contains(all, leak) {
			t.Errorf("%q in the child's environment", leak)
		}
	}
	if runtime.GOOS == "linux" {
		if files := string(c.call("files", "")); files != "[]" {
			t.Errorf("the child has inherited %s", files)
		}
	}
}

// A relative name means the directory that the gateway was started in, not the
// children's.
func TestRelativeCommand(t *testing.T) {
	program, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Symlink(program, "server"); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, nil, func(o *stdio.Options) { o.Command, o.Dir = []string{"./server", asChild, "hand"}, t.TempDir() })
	f.begin("u_1").call("pid", "")
}

func TestOutput(t *testing.T) {
	t.Parallel()
	t.Run("junk on standard output", func(t *testing.T) {
		t.Parallel()
		c := newFixture(t, []string{"hand"}).begin("u_1")
		if got := string(c.call("junk", "")); !strings.Contains(got, "heard") {
			t.Errorf("answer = %s", got)
		}
		log := c.f.log.await(t, `\\xff\\xfe`)
		if n := strings.Count(log, "what is no message"); n != 3 {
			t.Errorf("%d lines were logged, want 3:\n%s", n, log)
		}
	})
	t.Run("standard error is escaped", func(t *testing.T) {
		t.Parallel()
		c := newFixture(t, []string{"hand"}).begin("u_1")
		c.call("stderr", "\x1b[31mred\u202e\r\n"+strings.Repeat("z", 10_000)+"\nlast\n")
		log := c.f.log.await(t, `"line":"last"`)
		if !strings.Contains(log, `\\x1b[31mred\\u202e`) || strings.Contains(log, strings.Repeat("z", 5000)) || !strings.Contains(log, `"cut":true`) {
			t.Errorf("log:\n%s", log)
		}
	})
	t.Run("a flood of it", func(t *testing.T) {
		t.Parallel()
		c := newFixture(t, []string{"hand"}).begin("u_1")
		c.call("flood", "")
		c.send(http.MethodDelete, "")
		log := c.f.log.await(t, "its client has ended the session")
		told := 0
		for line := range strings.SplitSeq(log, "\n") {
			var m struct{ Dropped int }
			if json.Unmarshal([]byte(line), &m) == nil {
				told += m.Dropped
			}
		}
		if n := strings.Count(log, "MCP server says"); n+told != 20_000 || n > 5_000 {
			t.Errorf("%d lines were logged and %d left out, want 20000 together and few of them logged", n, told)
		}
	})
	t.Run("a message that is too long", func(t *testing.T) {
		t.Parallel()
		c := newFixture(t, []string{"hand"}, func(o *stdio.Options) { o.MaxMessage = 1 << 20 }).begin("u_1")
		if m := only(t, c.post(`{"jsonrpc":"2.0","id":1,"method":"flood stdout"}`)); m.Error == nil || !strings.Contains(m.Error.Message, "1048576 bytes") {
			t.Errorf("answer = %+v", m)
		}
		c.call("pid", "") // the session goes on
	})
}

func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"plain é 漢 \"q\"": "plain é 漢 \"q\"", "a\x1b]0;x\a": `a\x1b]0;x\a`, "\xff\xc3": `\xff\xc3`,
		`C:\x`: `C:\\x`, "\u2028\u200b\u0085": `\u2028\u200b\u0085`, "\x00\t": `\x00\t`, "'": "'"} {
		if got := stdio.Escape([]byte(in)); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestNewChecksOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want string
		change     func(*stdio.Options)
	}{
		{"no command", "Command is empty", func(o *stdio.Options) { o.Command = nil }},
		{"no such program", "Options.Command", func(o *stdio.Options) { o.Command = []string{"no-such-program-here"} }},
		{"D2 a variable of ours", "for Ostiary alone", func(o *stdio.Options) { o.Env = []string{"ostiary_secret"} }},
		{"a value", "not the name", func(o *stdio.Options) { o.Env = []string{"A=b"} }},
		{"a negative time", "must not be negative", func(o *stdio.Options) { o.Idle = -1 }},
		{"a negative bound", "must not be negative", func(o *stdio.Options) { o.MaxChildren = -1 }},
		{"a negative rate", "StartsPerMinute must not be negative", func(o *stdio.Options) { o.StartsPerMinute = -1 }},
		{"more for one than for all", "more than MaxChildren", func(o *stdio.Options) { o.MaxChildren, o.MaxPerSubject = 2, 3 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := stdio.Options{Command: []string{os.Args[0]}}
			tt.change(&o)
			if _, err := stdio.New(o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, want %q", err, tt.want)
			}
		})
	}
}

// A long silence is filled, so that no proxy takes it for the end.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	f := newFixture(t, []string{"hand"})
	f.bridge.SetTimes(time.Millisecond, time.Minute)
	c := f.begin("u_1")
	in := bufio.NewReader(c.listen().Body)
	for range 6 {
		if line, err := in.ReadString('\n'); err != nil || strings.TrimRight(line, " \n") != ":" && line != "\n" {
			t.Fatalf("line = %q, %v", line, err)
		}
	}
}

func FuzzReadMessages(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `[{"jsonrpc":"2.0","method":"x"}]`, "{\"jsonrpc\":\"2.0\",\n\"id\":\"a\\n\",\"result\":{}}",
		`{"jsonrpc":"2.0","id":1.5,"method":"x"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, "\xef\xbb\xbf{}", `[`, ``, "\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := stdio.ReadMessages(data)
		if err != nil {
			return
		}
		for _, raw := range list {
			if strings.ContainsAny(string(raw), "\r\n") || !json.Valid(raw) {
				t.Errorf("%q became %q, which is not one line of JSON", data, raw)
			}
		}
	})
}

func ExampleNew() {
	bridge, err := stdio.New(stdio.Options{Command: []string{"go", "version"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = bridge.Close(context.Background()) }()
	fmt.Println(bridge.Children(), "children before the first session")
	// Output: 0 children before the first session
}
