package authserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// answered is a client's host whose next answers a test gives word for word.
type answered struct {
	mu     sync.Mutex
	status int
	header http.Header
	body   string
	seen   []*http.Request
}

func (h *answered) set(status int, contentType, body string, header ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status, h.body, h.header = status, body, http.Header{"Content-Type": {contentType}}
	for i := 0; i+1 < len(header); i += 2 {
		h.header.Set(header[i], header[i+1])
	}
}

func (h *answered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, r)
	for name, values := range h.header {
		w.Header()[name] = values
	}
	w.WriteHeader(h.status)
	if h.status != http.StatusNoContent && h.status != http.StatusNotModified {
		_, _ = w.Write([]byte(h.body))
	}
}

// answering is a kit whose client host, name, answers as a test says.
type answering struct {
	*kit
	*answered
	name string
}

// eachAnswering runs fn on a server on each database; the host is at a public
// address.
func eachAnswering(t *testing.T, name string, fn func(t *testing.T, a *answering), opts ...testkit.ServerOption) {
	t.Helper()
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		a := &answering{answered: &answered{}, name: name}
		n := newNetwork(t)
		n.at(publicAddress, testkit.NewHTTPSHost(t, a.answered, name), name)
		server := testkit.NewServerWithOutbound(t, db, n.outbound(t, time.Minute), opts...)
		a.kit = &kit{Server: server, t: t, ctx: t.Context(), person: server.Person()}
		fn(t, a)
		n.heardNothing(t)
	})
}

func (a *answering) url(path string) string { return "https://" + a.name + path }

// document answers with a good document of the client at path, with changes: nil removes.
func (a *answering) document(path string, changes map[string]any, header ...string) app {
	id := a.url(path)
	doc := map[string]any{"client_id": id, "client_name": "Quill", "redirect_uris": []string{loopbackRedirect}, "token_endpoint_auth_method": "none"}
	for name, v := range changes {
		if doc[name] = v; v == nil {
			delete(doc, name)
		}
	}
	body, err := json.Marshal(doc)
	if err != nil {
		a.t.Fatal(err)
	}
	a.set(http.StatusOK, "application/json", string(body), header...)
	redirect := loopbackRedirect
	if list, ok := doc["redirect_uris"].([]string); ok && len(list) > 0 {
		redirect = list[0]
	}
	return app{id: id, method: registration.AuthNone, redirect: redirect}
}

func TestCI07_AnswersThatAreNoDocument(t *testing.T) {
	eachAnswering(t, "quill.example", func(t *testing.T, a *answering) {
		const ct = "application/json"
		for i, tt := range []struct {
			name              string
			status            int
			contentType, body string
			heading           string
		}{
			{"204", 204, ct, "", headingUnread},
			{"206", 206, ct, "DOC", headingUnread},
			{"304", 304, ct, "", headingUnread},
			{"404", 404, ct, "DOC", headingUnread},
			{"500", 500, ct, "DOC", headingUnread},
			{"201", 201, ct, "DOC", headingUnread},
			{"text/html", 200, "text/html", "DOC", headingInvalid},
			{"no type", 200, "", "DOC", headingInvalid},
			{"no JSON", 200, ct, "<html>", headingInvalid},
			{"empty", 200, ct, "", headingInvalid},
			{"array", 200, ct, "[DOC]", headingInvalid},
			{"null", 200, ct, "null", headingInvalid},
			{"two objects", 200, ct, "DOC DOC", headingInvalid},
			{"duplicate keys", 200, ct, `{"client_name":"Atlas",` + "CUT", headingInvalid},
			{"duplicate keys, other case", 200, ct, `{"Redirect_URIs":["https://evil.example/cb"],` + "CUT", ""},
			{"UTF-16", 200, ct, "UTF16", headingInvalid},
			{"byte order mark", 200, ct, "\ufeffDOC", headingInvalid},
			{"invalid UTF-8", 200, ct, `{"client_uri":"` + "\xff" + `",CUT`, headingInvalid},
		} {
			a.kit.sub("CI-07 "+tt.name, func(t *testing.T) {
				path := fmt.Sprintf("/%d.json", i)
				a.document(path, nil)
				doc := a.body
				body := strings.NewReplacer("DOC", doc, "CUT", doc[1:], "UTF16", utf16(doc)).Replace(tt.body)
				a.set(tt.status, tt.contentType, body)
				switch id := a.url(path); tt.heading {
				case headingUnread:
					a.unreadable(id)
				case headingInvalid:
					a.invalid(id)
				default: // only exact member names count: the other one is unknown
					c := app{id: id, method: registration.AuthNone, redirect: "https://evil.example/cb"}
					if page := a.open(a.Person(), a.authorizeURL(c, nil)); page.Status != http.StatusBadRequest || page.Leaves != nil {
						t.Errorf("a redirect URI of another member: %d %q", page.Status, page.Heading)
					}
					return
				}
				if _, err := a.DB.GetClient(a.ctx, a.url(path)); err == nil {
					t.Error("a client was made")
				}
				if row, err := a.DB.GetClientDocument(a.ctx, a.url(path)); err != nil || row.Hash != "" || row.RetryAt.IsZero() {
					t.Errorf("row %+v, %v; want the time of the next try and nothing else", row, err)
				}
			})
		}
		a.kit.sub("CI-07 mended, a minute later", func(*testing.T) {
			a.Clock.Advance(61 * time.Second)
			a.connect(a.document("/0.json", nil), nil)
		})
	})
}

func utf16(s string) string {
	b := []byte{0xff, 0xfe}
	for _, c := range []byte(s) {
		b = append(b, c, 0)
	}
	return string(b)
}

// CI-10, and RU-06 and RU-12 to RU-15 for documents: a redirect URI that nobody
// could register makes no client, also beside a good one.
func TestCI10_RU_RedirectsOfDocuments(t *testing.T) {
	eachAnswering(t, "quill.example", func(t *testing.T, a *answering) {
		n := 0
		refuse := func(name string, redirects any) {
			a.kit.sub(name, func(t *testing.T) {
				n++
				path := fmt.Sprintf("/%d.json", n)
				a.document(path, map[string]any{"redirect_uris": redirects})
				a.invalid(a.url(path))
				if _, err := a.DB.GetClient(a.ctx, a.url(path)); err == nil {
					t.Error("a client was made")
				}
			})
		}
		refuse("CI-10 missing", nil)
		refuse("CI-10 empty", []string{})
		refuse("CI-10 a string", webCallback)
		refuse("CI-10 numbers", []int{1})
		for id, uris := range unregistrable {
			for _, uri := range uris {
				refuse(id+" "+uri, []string{uri})
				refuse(id+" beside a good one: "+uri, []string{webCallback, uri})
			}
		}
	}, roomForDocuments)
}

// roomForDocuments lets a test read as many documents as it likes.
func roomForDocuments(c *config.Config) {
	c.RegistrationPerHour, c.RegistrationPerHourTotal, c.CIMDPerHour = 10_000, 10_000, 10_000
}

// RU-18: one spelling of an internationalized host, also in a document.
func TestRU18_InternationalizedHostOfADocument(t *testing.T) {
	eachAnswering(t, "quill.example", func(t *testing.T, a *answering) {
		const unicode, ascii = "https://bücher.example/cb", "https://xn--bcher-kva.example/cb"
		for i, published := range []string{unicode, ascii} {
			c := a.document(fmt.Sprintf("/%d.json", i), map[string]any{"redirect_uris": []string{published}})
			c.redirect = ascii
			a.unburned(c, a.code(c, nil))
			a.stopped(a.authorizeURL(c, values("redirect_uri", unicode)))
			a.stopped(a.authorizeURL(c, values("redirect_uri", "https://XN--BCHER-KVA.example/cb")))
		}
	})
}

// CI-16: between five minutes and a day, whatever the host says; and what the
// document no longer lists is no redirect URI.
func TestCI16_Freshness(t *testing.T) {
	const old, moved = "https://app.example.net/old", "https://app.example.net/moved"
	for name, tt := range map[string]struct {
		header []string
		fresh  time.Duration
	}{
		"ten years": {[]string{"Cache-Control", "max-age=315360000"}, 24 * time.Hour},
		"no-store":  {[]string{"Cache-Control", "no-store"}, 5 * time.Minute},
		"one second": {[]string{"Cache-Control", "max-age=1",
			"Vary", "*"}, 5 * time.Minute},
		"nothing": {nil, time.Hour},
		"expired": {[]string{"Expires", "0", "Cache-Control", "max-age=-1"}, 5 * time.Minute},
	} {
		t.Run("CI-16 "+name, func(t *testing.T) {
			eachAnswering(t, "quill.example", func(t *testing.T, a *answering) {
				c := a.document("/client.json", map[string]any{"redirect_uris": []string{old}}, tt.header...)
				read := a.Clock.Now()
				a.connect(c, nil)
				a.document("/client.json", map[string]any{"redirect_uris": []string{moved}}, tt.header...)
				a.Clock.Advance(read.Add(tt.fresh - time.Millisecond).Sub(a.Clock.Now()))
				a.toConsent(a.Person(), a.authorizeURL(c, nil))
				if n := len(a.seen); n != 1 {
					t.Errorf("%d fetches before %s", n, tt.fresh)
				}
				a.Clock.Advance(time.Millisecond)
				a.toConsent(a.Person(), a.authorizeURL(app{id: c.id, redirect: moved}, nil))
				if n := len(a.seen); n != 2 {
					t.Errorf("%d fetches at %s, want 2", n, tt.fresh)
				}
				a.stopped(a.authorizeURL(c, nil))
			})
		})
	}
	t.Run("CI-16 a host that is gone serves a week, and no longer", func(t *testing.T) {
		eachAnswering(t, "quill.example", func(t *testing.T, a *answering) {
			c := a.document("/client.json", nil)
			read := a.Clock.Now()
			a.connect(c, nil)
			a.set(http.StatusNotFound, "text/plain", "")
			a.Clock.Advance(read.Add(7*24*time.Hour - time.Minute).Sub(a.Clock.Now()))
			a.toConsent(a.Person(), a.authorizeURL(c, nil))
			a.Clock.Advance(2 * time.Hour)
			wantPage(t, a.open(a.Person(), a.authorizeURL(c, nil)), http.StatusServiceUnavailable)
		})
	})
}

// CI-17: where consent is remembered, it is for the document as it was.
func TestCI17_ConsentIsForTheDocument(t *testing.T) {
	eachAnswering(t, "quill.example", func(t *testing.T, a *answering) {
		const home, added = "https://quill.example/cb", "https://quill.example/other"
		c := a.document("/client.json", map[string]any{"redirect_uris": []string{home}})
		silent := func() bool {
			t.Helper()
			page := a.open(a.person, a.authorizeURL(c, nil))
			return page.Leaves != nil && page.Leaves.Query().Get("code") != ""
		}
		a.connect(c, nil)
		if !silent() {
			t.Fatal("D11: a website on the document's site is remembered")
		}
		for name, change := range map[string]map[string]any{
			"CI-17 another redirect URI": {"redirect_uris": []string{home, added}},
			"CI-17 another name":         {"redirect_uris": []string{home}, "client_name": "Quill Pro"},
			"CI-17 keys": {"redirect_uris": []string{home}, "token_endpoint_auth_method": "private_key_jwt",
				"token_endpoint_auth_methods_supported": []string{"none", "private_key_jwt"}, "jwks_uri": "https://quill.example/keys"},
		} {
			a.kit.sub(name, func(t *testing.T) {
				a.document("/client.json", change)
				a.Clock.Advance(2 * time.Hour)
				if got := a.open(a.person, a.authorizeURL(c, values("prompt", "none"))); got.Leaves == nil || got.Leaves.Query().Get("error") != "consent_required" {
					t.Errorf("prompt=none: %d %q leading to %v", got.Status, got.Heading, got.Leaves)
				}
				page := a.toConsent(a.person, a.authorizeURL(c, nil))
				if !strings.Contains(page.Body, "changed since you last allowed it") {
					t.Error("the page does not tell of the change")
				}
				a.connect(c, nil)
				if !silent() {
					t.Error("not remembered afterwards")
				}
			})
		}
	})
}

// CI-18, CI-22: any program may name Claude Code's document and listen on a port.
func TestCI18_AnotherProgramBehindAKnownDocument(t *testing.T) {
	eachAnswering(t, "claude.ai", func(t *testing.T, a *answering) {
		genuine := a.document("/oauth/claude-code-client-metadata", map[string]any{"client_name": "Claude Code",
			"redirect_uris": []string{"http://127.0.0.1/callback", "http://localhost/callback"}})
		genuine.redirect = "http://127.0.0.1:51001/callback"
		a.connect(genuine, nil)
		thief := genuine
		thief.redirect = "http://127.0.0.1:51999/callback"
		for name, c := range map[string]app{"its own port": thief, "the same port": genuine} {
			a.kit.sub("CI-18 "+name, func(t *testing.T) {
				for range 2 {
					page := a.toConsent(a.person, a.authorizeURL(c, nil))
					for _, words := range []string{"Only continue if you started this", "Says it is from", "claude.ai", "files:read", "files:write"} {
						if !strings.Contains(page.Body, words) {
							t.Errorf("the page does not say %q", words)
						}
					}
					if strings.Contains(page.Body, "Comes from") {
						t.Error("the page says that it comes from claude.ai, which no program can prove")
					}
				}
				got := a.open(a.person, a.authorizeURL(c, values("prompt", "none")))
				if got.Leaves == nil || got.Leaves.Query().Get("error") != "consent_required" || got.Leaves.Query().Get("code") != "" {
					t.Errorf("prompt=none: %d leading to %v", got.Status, got.Leaves)
				}
			})
		}
		for name, scope := range map[string]string{"one more": "files:read files:write files:delete", "none more": "files:read", "none": ""} {
			a.kit.sub("CI-22 "+name, func(t *testing.T) {
				page := a.toConsent(a.person, a.authorizeURL(thief, values("scope", scope)))
				asked := strings.Fields(scope)
				if scope == "" {
					asked = []string{"files:read"}
				}
				form := page.Form("/consent")
				for _, s := range asked {
					if !strings.Contains(page.Body, s) && !strings.Contains(fmt.Sprint(form.Boxes, form.Values), s) {
						t.Errorf("the page does not show %s", s)
					}
				}
			})
		}
	})
}

// CI-19: the whole host, and the punycode of one that looks like another.
func TestCI19_Homographs(t *testing.T) {
	for _, tt := range []struct{ name, shown string }{
		{"claude.ai.evil.example", "claude.ai.<b>evil.example</b>"},
		{"xn--80ak6aa92e.example", "xn--80ak6aa92e.example"},
	} {
		t.Run("CI-19 "+tt.name, func(t *testing.T) {
			eachAnswering(t, tt.name, func(t *testing.T, a *answering) {
				c := a.document("/x", map[string]any{"client_name": "Claude", "redirect_uris": []string{a.url("/cb")}})
				page := a.toConsent(a.person, a.authorizeURL(c, nil))
				if !strings.Contains(page.Body, tt.shown) {
					t.Errorf("the page does not show %s:\n%s", tt.shown, page.Body)
				}
				for _, words := range []string{"Not verified", "can be mistaken for another address"} {
					if !strings.Contains(page.Body, words) {
						t.Errorf("the page does not say %q", words)
					}
				}
			})
		})
	}
}

// CI-20, CI-21: one request, which tells nothing of the person; no other member
// of the document is fetched.
func TestCI20_CI21_WhatIsAsked(t *testing.T) {
	eachAnswering(t, "quill.example", func(t *testing.T, a *answering) {
		c := a.document("/client.json", map[string]any{"logo_uri": "https://quill.example/logo.png", "client_uri": "https://quill.example/",
			"tos_uri": "https://10.0.0.1/tos", "policy_uri": "https://169.254.169.254/", "jwks_uri": "https://quill.example/keys"}, "Set-Cookie", "a=b")
		a.connect(c, nil)
		page := a.toConsent(a.person, a.authorizeURL(c, nil))
		if strings.Contains(page.Body, "logo.png") {
			t.Error("CI-20: the person's browser would load the logo")
		}
		a.Clock.Advance(48 * time.Hour)
		req, err := http.NewRequestWithContext(a.ctx, http.MethodGet, a.authorizeURL(c, nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range map[string]string{"Referer": "https://evil.example/", "X-Forwarded-For": "203.0.113.9", "Authorization": "Bearer x", "Accept-Language": "fr"} {
			req.Header.Set(name, v)
		}
		if _, err := a.person.Do(req); err != nil {
			t.Fatal(err)
		}
		if len(a.seen) != 2 {
			t.Fatalf("CI-20: %d requests, want the document twice", len(a.seen))
		}
		for _, r := range a.seen {
			if r.Method != http.MethodGet || r.URL.String() != "/client.json" {
				t.Errorf("CI-20: asked for %s %s", r.Method, r.URL)
			}
			for name := range r.Header {
				switch name {
				case "Accept", "Accept-Encoding", "User-Agent", "Connection":
				default:
					t.Errorf("CI-21: sent %s: %v", name, r.Header[name])
				}
			}
			if r.Header.Get("User-Agent") != "ostiary" || r.Header.Get("Accept") != "application/json" {
				t.Errorf("CI-21: %v", r.Header)
			}
		}
	})
}
