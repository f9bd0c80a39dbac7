package authserver_test

import (
	"context"
	"fmt"
	"net/http"

	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// The rules of package netguard and of registration's documents one by one stand
// there; here they are seen by whoever opens /authorize. Where a document cannot
// be read the page is 503, not the catalogue's 400: a wait is of use (pages 4.10).

// The headings of the two stops.
const (
	headingUnread  = "We can’t identify this app"
	headingInvalid = "This app’s details don’t add up"
)

// stop opens an authorization request of a client URL and checks a page that
// leads nowhere. Only these tables may change: no client, consent or session.
func (k *kit) stop(id string, status int, heading string, tables ...string) *testkit.Page {
	k.t.Helper()
	var page *testkit.Page
	k.changesOnly(func() {
		page = k.open(k.Person(), k.authorizeURL(app{id: id, redirect: loopbackRedirect}, nil))
	}, tables...)
	wantPage(k.t, page, status)
	if page.Heading != heading || page.Form("/consent") != nil || page.Form("/sign-in") != nil {
		k.t.Errorf("%s: %q, want %q and no form", id, page.Heading, heading)
	}
	for _, l := range page.Links {
		if !strings.HasPrefix(l, testkit.Issuer) {
			k.t.Errorf("%s: the page leads to %s", id, l)
		}
	}
	return page
}

// unreadable is stop for a document that could not be read: only when to ask
// again is kept.
func (k *kit) unreadable(id string) *testkit.Page {
	k.t.Helper()
	return k.stop(id, http.StatusServiceUnavailable, headingUnread, "client_documents", "fetch_budgets")
}

// invalid is stop for a document that breaks a rule, which is an event (D35).
func (k *kit) invalid(id string) *testkit.Page {
	k.t.Helper()
	return k.stop(id, http.StatusBadRequest, headingInvalid, "client_documents", "fetch_budgets", "audit_events")
}

func TestCI01_NoClientURL(t *testing.T) {
	eachWorld(t, []string{"quill.example"}, func(t *testing.T, w *world) {
		w.publish("/client.json", nil, loopbackRedirect)
		for name, id := range map[string]string{
			"http":                 "http://quill.example/client.json",
			"root path":            "https://quill.example/",
			"no path":              "https://quill.example",
			"fragment":             "https://quill.example/client.json#a",
			"empty fragment":       "https://quill.example/client.json#",
			"user name":            "https://me@quill.example/client.json",
			"empty user name":      "https://@quill.example/client.json",
			"dot":                  "https://quill.example/./client.json",
			"two dots":             "https://quill.example/a/../client.json",
			"escaped dot":          "https://quill.example/%2e/client.json",
			"escaped dots":         "https://quill.example/a/%2E%2e/client.json",
			"half escaped dots":    "https://quill.example/a/.%2e/client.json",
			"line break":           "https://quill.example/client.json\r\nHost: x",
			"tab":                  "https://quill.example/\tclient.json",
			"space":                "https://quill.example/client json",
			"space before":         " https://quill.example/client.json",
			"NUL":                  "https://quill.example/client.json\x00",
			"backslash":            `https://quill.example\client.json`,
			"invalid UTF-8":        "https://quill.example/\xff",
			"letter of another":    "https://quіll.example/client.json", // Cyrillic і
			"upper-case scheme":    "HTTPS://quill.example/client.json",
			"longer than any page": "https://quill.example/" + strings.Repeat("a", 2100),
		} {
			w.sub("CI-01 "+name, func(*testing.T) { w.stopped(w.authorizeURL(app{id: id, redirect: loopbackRedirect}, nil)) })
		}
		if asked := w.dns.Asked(); len(asked) != 0 || w.host.Requests() != 0 {
			t.Errorf("asked the DNS for %q and the host %d times", asked, w.host.Requests())
		}
		w.heardNothing(t)
	})
}

// Hosts that are refused as they are written: nobody is asked, not even the DNS.
func TestCI02_CI03_CI11_CI13_RefusedAsWritten(t *testing.T) {
	eachWorld(t, []string{"quill.example"}, func(t *testing.T, w *world) {
		for id, hosts := range map[string][]string{
			"CI-02": {"127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "192.0.2.1", "224.0.0.1", "240.0.0.1",
				"[::1]", "[fd00::1]", "[fe80::1]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "[2002:a00:1::1]",
				"[2001:0:4136:e378:8000:63bf:3fff:fdd2]", "2130706433", "0177.0.0.1", "0x7f.0x0.0x0.0x1", "127.1"},
			"CI-03": {"metadata.google.internal", "metadata.google.internal.", "localhost.", "a.localhost", "printer.local", "quill.example."},
			"CI-11": {"quill.example:8443", "quill.example:22", "quill.example:0443", "93.184.216.34", "[2606:4700::1111]", "intranet"},
			"CI-13": {"id.example.com", "ID.example.com", "id.example.com:443"},
		} {
			for _, host := range hosts {
				w.sub(id+" "+host, func(t *testing.T) {
					url := "https://" + host + "/client.json"
					page := w.open(w.Person(), w.authorizeURL(app{id: url, redirect: loopbackRedirect}, nil))
					// a spelling that no Client Identifier URL has is 400, as CI-01
					if page.Status != http.StatusBadRequest && page.Status != http.StatusServiceUnavailable || page.Heading != headingUnread {
						t.Errorf("%d %q", page.Status, page.Heading)
					}
					wantPage(t, page, page.Status)
				})
			}
		}
		if asked := w.dns.Asked(); len(asked) != 0 {
			t.Errorf("looked up %q", asked)
		}
		if tried := w.attempts(); len(tried) != 0 {
			t.Errorf("connected to %q", tried)
		}
		w.heardNothing(t)
		w.noClients(t)
	})
}

// noClients fails when a document made a client.
func (k *kit) noClients(t *testing.T) {
	t.Helper()
	if list, err := k.DB.ListClients(k.ctx); err != nil || len(list) != 0 {
		t.Errorf("clients %v, %v", list, err)
	}
}

// Names that lead inside: one address that is not public is enough. What a CNAME
// leads to is what the DNS answers for the name (netguard.TestCI03_CNAME).
func TestCI02_CI03_NamesThatLeadInside(t *testing.T) {
	eachWorld(t, []string{"quill.example"}, func(t *testing.T, w *world) {
		for i, answer := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "192.0.2.1", "224.0.0.1", "240.0.0.1",
			"168.63.129.16", "::1", "fd00::1", "fe80::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1",
			"2001:0:4136:e378:8000:63bf:3fff:fdd2",
			publicAddress + " 10.0.0.1", "10.0.0.1 " + publicAddress, publicAddress + " ::1", "2606:4700::1111 fd00::1"} {
			w.sub("CI-02 CI-03 "+answer, func(*testing.T) {
				name := fmt.Sprintf("n%d.example", i)
				w.dns.Set(name, addresses(strings.Fields(answer)...))
				w.unreadable("https://" + name + "/client.json")
			})
		}
		if tried := w.attempts(); len(tried) != 0 {
			t.Errorf("connected to %q", tried)
		}
		w.heardNothing(t)
		w.noClients(t)
	})
}

// The DNS answers a public address first and a private one afterwards.
func TestCI04_RebindingThroughAuthorize(t *testing.T) {
	eachWorld(t, []string{"rebind.example"}, func(t *testing.T, w *world) {
		public, private := addresses(publicAddress), addresses("127.0.0.1")
		w.sub("CI-04 within one request", func(t *testing.T) {
			// the host does not answer, which may make a client look again
			w.dns.Set("closed.example", addresses(closedAddress), private)
			w.unreadable("https://closed.example/client.json")
			if asked := w.dns.Asked(); !slices.Equal(asked, []string{"closed.example"}) {
				t.Errorf("looked up %q, want the one answer that was checked to be used", asked)
			}
		})
		w.sub("CI-04 between two requests", func(t *testing.T) {
			w.Clock.Advance(2 * time.Hour)
			w.unreadable("https://closed.example/client.json")
		})
		w.sub("CI-04 of a known client", func(t *testing.T) {
			w.dns.Set("rebind.example", public, private)
			a := w.publish("/client.json", nil, loopbackRedirect)
			w.connect(a, nil)
			w.Clock.Advance(2 * time.Hour)
			w.toConsent(w.person, w.authorizeURL(a, nil)) // A33: its last good copy serves
			doc, err := w.DB.GetClientDocument(w.ctx, a.id)
			if err != nil || doc.Failures != 1 || !strings.Contains(doc.Failure, "refused") {
				t.Errorf("document %+v, %v; want the second answer refused", doc, err)
			}
		})
		want := []string{closedAddress + ":443", publicAddress + ":443"}
		if tried := w.attempts(); !slices.Equal(tried, want) {
			t.Errorf("connected to %q, want %q", tried, want)
		}
		w.heardNothing(t)
	})
}

// broken is a host that answers badly, as the path says.
type broken struct {
	redirect string
	sent     atomic.Int64
}

func (b *broken) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	kind := strings.Trim(r.URL.Path, "/")
	if status, err := strconv.Atoi(kind); err == nil {
		w.Header().Set("Location", b.redirect)
		w.WriteHeader(status)
		return
	}
	switch kind {
	case "endless":
		for chunk := make([]byte, 16<<10); r.Context().Err() == nil; {
			n, _ := w.Write(chunk)
			b.sent.Add(int64(n))
		}
	case "gigabyte":
		w.Header().Set("Content-Length", "1073741824")
	case "gzip":
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write([]byte{0x1f, 0x8b})
	case "headers":
		for i := range 1024 {
			w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("a", 1024))
		}
	default: // drip: one byte, and then nothing
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
}

// impatient is how long these servers wait for a host.
const impatient = 400 * time.Millisecond

func TestCI05_CI06_HostsThatAnswerBadly(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		n, b := newNetwork(t), &broken{}
		other := testkit.NewHTTPSHost(t, http.NotFoundHandler(), "other.example")
		n.at(publicAddress, testkit.NewHTTPSHost(t, b, "broken.example"), "broken.example")
		n.at("93.184.216.40", other, "other.example")
		n.dns.Set("silent.example", addresses(silentAddress))
		server := testkit.NewServerWithOutbound(t, db, n.outbound(t, impatient))
		k := &kit{Server: server, t: t, ctx: t.Context()}
		for _, target := range []string{"https://169.254.169.254/latest/", "https://other.example/client.json", "http://10.0.0.1/"} {
			b.redirect = target
			for _, status := range []int{301, 302, 303, 307, 308} {
				k.sub(fmt.Sprintf("CI-05 %d to %s", status, target), func(*testing.T) {
					k.unreadable(fmt.Sprintf("https://broken.example/%d/?to=%s", status, target))
				})
			}
		}
		if other.Requests() != 0 {
			t.Errorf("CI-05: %d redirects were followed", other.Requests())
		}
		for _, path := range []string{"drip", "gzip", "headers"} {
			k.sub("CI-06 "+path, func(*testing.T) { k.unreadable("https://broken.example/" + path) })
		}
		for _, path := range []string{"gigabyte", "endless"} {
			k.sub("CI-06 "+path, func(*testing.T) { k.invalid("https://broken.example/" + path) })
		}
		k.sub("CI-06 a TLS handshake without end", func(*testing.T) { k.unreadable("https://silent.example/client.json") })
		if sent := b.sent.Load(); sent > 32<<20 {
			t.Errorf("CI-06: a body without end was read for %d bytes", sent)
		}
		n.heardNothing(t)
		k.noClients(t)
	})
}

func TestCI12_CertificatesThroughAuthorize(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		n := newNetwork(t)
		good := testkit.NewHTTPSHost(t, http.NotFoundHandler(), "quill.example")
		expired := testkit.NewExpiredHTTPSHost(t, http.NotFoundHandler(), "expired.example")
		n.at(publicAddress, good, "quill.example", "wrong-name.example")
		n.at("93.184.216.40", expired, "expired.example")
		outbound := n.outbound(t, time.Minute)
		// after outbound, which trusts the authorities of the others
		unknown := testkit.NewHTTPSHost(t, http.NotFoundHandler(), "self-signed.example")
		n.at("93.184.216.41", unknown, "self-signed.example")
		server := testkit.NewServerWithOutbound(t, db, outbound)
		k := &kit{Server: server, t: t, ctx: t.Context()}
		for _, name := range []string{"self-signed", "expired", "wrong-name"} {
			k.sub("CI-12 "+name, func(*testing.T) { k.unreadable("https://" + name + ".example/client.json") })
		}
		if seen := good.Requests() + expired.Requests() + unknown.Requests(); seen != 0 {
			t.Errorf("%d requests to hosts that did not prove who they are", seen)
		}
		k.unreadable("https://quill.example/client.json") // the same host under its name is asked
		if good.Requests() != 1 {
			t.Errorf("%d requests to the good one, want 1", good.Requests())
		}
		n.heardNothing(t)
	})
}

// CI-15: an address that we refuse, a closed port, an open one that says nothing
// and a name that nobody has are one page, after the same time. Why is in the log.
func TestCI15_OnePage(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		n := newNetwork(t)
		n.at(publicAddress, testkit.NewHTTPSHost(t, http.NotFoundHandler(), "gone.example"), "gone.example")
		for name, address := range map[string]string{"priv": "10.0.0.1", "shut": closedAddress, "mute": silentAddress, "meta": "169.254.169.254"} {
			n.dns.Set(name+".example", addresses(address))
		}
		server := testkit.NewServerWithOutbound(t, db, n.outbound(t, impatient))
		var pauses []time.Duration
		server.Pause = pauseInto(&pauses)
		server = server.Again(t)
		k := &kit{Server: server, t: t, ctx: t.Context()}
		var first string
		for i, name := range []string{"priv", "meta", "shut", "mute", "gone", "none"} {
			page := k.unreadable("https://" + name + ".example/client.json")
			body := strings.NewReplacer(name+".example", "HOST", page.Header.Get("X-Request-Id"), "REFERENCE").Replace(page.Body)
			if i == 0 {
				first = body
			}
			if diff := cmp.Diff(first, body); diff != "" {
				t.Errorf("CI-15: the page of %s differs (-first +this):\n%s", name, diff)
			}
			for _, word := range []string{"refused", "10.0.0.1", "169.254", "no such host", "prohibited", "deadline", "status 404"} {
				if strings.Contains(page.Body, word) {
					t.Errorf("CI-15: the page of %s says %q", name, word)
				}
			}
			if !strings.Contains(k.Logs.String(), name+".example") {
				t.Errorf("CI-15: the log says nothing of %s", name)
			}
		}
		if len(pauses) != 6 {
			t.Fatalf("CI-15: %d pauses, want one for each", len(pauses))
		}
		for _, p := range pauses { // what is left of the second
			if p <= 0 || p > time.Second {
				t.Errorf("CI-15: a pause of %s", p)
			}
		}
	})
}

// CI-15 by the clock on the wall: each of them takes its second.
func TestCI15_TimeOnTheWall(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	n := newNetwork(t)
	n.dns.Set("priv.example", addresses("10.0.0.1"))
	n.dns.Set("shut.example", addresses(closedAddress))
	server := testkit.NewServerWithOutbound(t, db, n.outbound(t, time.Minute))
	server.Pause = nil // as in production
	server = server.Again(t)
	k := &kit{Server: server, t: t, ctx: t.Context()}
	var all sync.WaitGroup
	for _, name := range []string{"priv", "shut", "none"} {
		person := k.Person()
		all.Go(func() {
			began := time.Now()
			page, err := person.Open(k.ctx, k.authorizeURL(app{id: "https://" + name + ".example/client.json", redirect: loopbackRedirect}, nil))
			if took := time.Since(began); err != nil || page.Status != http.StatusServiceUnavailable || took < time.Second {
				t.Errorf("CI-15: %s is answered %v after %s, %v; want 503 after a second", name, page, took, err)
			}
		})
	}
	all.Wait()
}

// CI-14: whoever makes up URLs spends their own budget, and then the site's.
func TestCI14_SprayThroughAuthorize(t *testing.T) {
	names := []string{"spray.example", "quill.example"}
	eachWorld(t, names, func(t *testing.T, w *world) {
		w.host.URL = "https://quill.example"
		known := w.publish("/client.json", nil, loopbackRedirect)
		w.connect(known, nil)
		registered := w.register(appRedirect)
		before := w.host.Requests()
		ask := func(ip, id string) int {
			t.Helper()
			req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, w.authorizeURL(app{id: id, redirect: loopbackRedirect}, nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			req.RemoteAddr = ip + ":1234"
			resp, err := w.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body := testkit.Body(t, resp)
			if resp.StatusCode == http.StatusTooManyRequests && (resp.Header.Get("Retry-After") == "" || !strings.Contains(body, "Too many requests")) {
				t.Fatalf("429 without Retry-After or a page: %v", resp.Header)
			}
			return resp.StatusCode
		}
		spray := func(ip string, n int, id func(i int) string) (statuses map[int]int) {
			statuses = map[int]int{}
			for i := range n {
				statuses[ask(ip, id(i))]++
			}
			return statuses
		}
		w.sub("CI-14 1000 URLs of one source", func(t *testing.T) {
			got := spray("198.51.100.1", 1000, func(i int) string { return fmt.Sprintf("https://spray.example/%d", i) })
			if got[http.StatusServiceUnavailable] != 20 || got[http.StatusTooManyRequests] != 980 || w.host.Requests()-before != 20 {
				t.Errorf("%v after %d fetches, want 20 and then 429", got, w.host.Requests()-before)
			}
		})
		w.sub("CI-14 a path spray of many sources", func(t *testing.T) {
			before := w.host.Requests()
			for s := range 10 {
				spray(fmt.Sprintf("198.51.100.%d", 10+s), 10, func(i int) string { return fmt.Sprintf("https://spray.example/%d/%d", s, i) })
			}
			if n := w.host.Requests() - before; n != 10 {
				t.Errorf("%d fetches, want the 10 that the site's budget of 30 had left", n)
			}
		})
		w.sub("CI-14 others are unaffected", func(t *testing.T) {
			w.connect(known, nil)
			w.connect(registered, nil)
			if status := ask("203.0.113.1", w.publish("/new.json", nil, loopbackRedirect).id); status != http.StatusSeeOther {
				t.Errorf("a new client of another site from another source: %d", status)
			}
		})
		list, err := w.DB.ListClientDocuments(w.ctx)
		if err != nil || len(list) != 30+2 {
			t.Errorf("%d rows of documents, want one for each fetch and no more: %v", len(list), err)
		}
	}, func(c *config.Config) { c.RegistrationPerHour, c.CIMDPerHour = 20, 30 })
}

// pauseInto returns a Pause that takes no time and writes down how long it would.
func pauseInto(list *[]time.Duration) func(context.Context, time.Duration) {
	var mu sync.Mutex
	return func(_ context.Context, d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, d)
	}
}
