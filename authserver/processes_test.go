package authserver_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// Two processes and a restart on one database: what one has read the others use.
func TestA33_DocumentOfAnotherProcess(t *testing.T) {
	eachWorld(t, []string{"quill.example"}, func(t *testing.T, w *world) {
		a := w.site.publish("/client.json", nil, loopbackRedirect)
		code := w.code(a, nil)
		second := &kit{Server: w.Again(t), t: t, ctx: w.ctx}
		second.person = second.Person()
		got := second.redeem(a, code, nil)
		want(t, got, 200, "")
		second.connect(a, nil)
		w.Clock.Advance(59 * time.Second)
		restarted := &kit{Server: w.Again(t), t: t, ctx: w.ctx}
		restarted.person = restarted.Person()
		restarted.connect(a, nil)
		want(t, restarted.refresh(a, got.body.RefreshToken, nil), 200, "")
		if n := w.host.Requests(); n != 1 {
			t.Errorf("%d fetches, want the first process's", n)
		}
		// a document that nobody can read is known to all, too
		w.unreadable("https://quill.example/gone.json")
		wantPage(t, second.open(second.Person(), second.authorizeURL(app{id: "https://quill.example/gone.json", redirect: loopbackRedirect}, nil)), http.StatusServiceUnavailable)
		if n := w.host.Requests(); n != 2 {
			t.Errorf("%d fetches, want one more for the one that is gone", n)
		}
		w.heardNothing(t)
	})
}

// held is a client's host that answers nobody until it is let go.
type held struct {
	next  http.Handler
	begun chan struct{} // hears of each request
	let   chan struct{}
}

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.begun <- struct{}{}
	<-h.let
	h.next.ServeHTTP(w, r)
}

// 1,000 people follow the first link of a new client at once, to two processes:
// each process asks once, and one client is made. It is not parallel: a thousand
// and every other test at once would be a test of the machine.
func TestA33_CI14_ThousandAtOnce(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		docs := &documents{docs: map[string]any{}}
		gate := &held{next: docs, begun: make(chan struct{}, 1000), let: make(chan struct{})}
		host := testkit.NewHTTPSHost(t, gate, "quill.example")
		s := &site{documents: docs, host: host}
		host.URL = "https://quill.example"
		n := newNetwork(t)
		n.at(publicAddress, host, "quill.example")
		server := testkit.NewServerWithOutbound(t, db, n.outbound(t, time.Minute), roomForDocuments)
		s.kit = &kit{Server: server, t: t, ctx: t.Context()}
		a := s.publish("/client.json", nil, loopbackRedirect)
		processes := []*http.Client{s.Client(), s.Again(t).Client()}
		ask := s.authorizeURL(a, values("prompt", "none")) // which stores no request

		const people = 1000
		var wrong atomic.Int64
		var done sync.WaitGroup
		open := func(process *http.Client) {
			resp, err := process.Get(ask)
			if err != nil {
				t.Error(err)
				return
			}
			testkit.Body(t, resp)
			// login_required: the client is there. A machine that is too slow for a
			// thousand at once tells some to come again
			late := resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != ""
			if resp.StatusCode != http.StatusBadRequest && !late {
				wrong.Add(1)
			}
		}
		for _, process := range processes {
			done.Go(func() { open(process) })
			<-gate.begun
		}
		var started sync.WaitGroup
		for i := range people - len(processes) {
			started.Add(1)
			done.Go(func() {
				started.Done()
				open(processes[i%2])
			})
		}
		started.Wait()
		close(gate.let)
		done.Wait()
		for _, process := range processes {
			resp, err := process.Get(ask)
			if err != nil {
				t.Fatal(err)
			}
			if testkit.Body(t, resp); resp.StatusCode != http.StatusBadRequest {
				t.Errorf("afterwards: %d, want the client's page", resp.StatusCode)
			}
		}
		if got := host.Requests(); got != len(processes) {
			t.Errorf("%d requests of new people made %d fetches, want one a process", people, got)
		}
		if wrong.Load() != 0 {
			t.Errorf("%d of %d requests were not answered by the client's page", wrong.Load(), people)
		}
		if events := named(t, s.kit, "client.discovered"); len(events) != 1 {
			t.Errorf("%d events, want one new client", len(events))
		}
		if list, err := db.ListClients(t.Context()); err != nil || len(list) != 1 {
			t.Error(fmt.Sprint(len(list), " clients"), err)
		}
	})
}
