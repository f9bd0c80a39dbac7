package e2e

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

// makers are the websites of the people who make apps, where metadata documents
// lie (Client ID Metadata Documents). All are one host of this machine; a server
// reaches them by their names, over a proxy as companies have one.
type makers struct {
	*testkit.HTTPSHost
	proxy string

	mu   sync.Mutex
	docs map[string]map[string]any // by client_id
}

// newMakers starts the websites of these names.
func newMakers(t *testing.T, names ...string) *makers {
	t.Helper()
	m := &makers{docs: map[string]map[string]any{}}
	m.HTTPSHost = testkit.NewHTTPSHost(t, http.HandlerFunc(m.serve), names...)
	proxy := httptest.NewServer(http.HandlerFunc(m.connect))
	t.Cleanup(proxy.Close)
	m.proxy = proxy.URL
	return m
}

// publish puts the document of an app online. A nil value leaves a member out.
func (m *makers) publish(clientID, name, redirectURI string, more map[string]any) {
	doc := map[string]any{"client_id": clientID, "client_name": name, "redirect_uris": []string{redirectURI}, "token_endpoint_auth_method": "none"}
	for member, value := range more {
		if doc[member] = value; value == nil {
			delete(doc, member)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.docs[clientID] = doc
}

func (m *makers) serve(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	doc, ok := m.docs["https://"+r.Host+r.URL.Path]
	m.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(doc)
}

// connect is the proxy: whatever name is asked for, the websites answer.
func (m *makers) connect(w http.ResponseWriter, r *http.Request) {
	u, err := url.Parse(m.URL)
	if err != nil || r.Method != http.MethodConnect {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	site, err := net.Dial("tcp4", net.JoinHostPort("127.0.0.1", u.Port()))
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	server, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = site.Close()
		return
	}
	_, _ = io.WriteString(server, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() {
		_, _ = io.Copy(site, server)
		_ = site.Close()
	}()
	_, _ = io.Copy(server, site)
	_ = server.Close()
}

// documentSite is a server that can read the documents of makers.
type documentSite struct {
	*site
	makers *makers
	db     string
}

// newDocumentSite starts a server with an account, the usual MCP server and these
// variables.
func newDocumentSite(t *testing.T, m *makers, env ...string) *documentSite {
	t.Helper()
	d := &documentSite{makers: m, db: filepath.Join(t.TempDir(), "ostiary.db")}
	env = append(env, "SSL_CERT_FILE="+m.CAFile(t), "OSTIARY_OUTBOUND_PROXY="+m.proxy)
	d.site = &site{Ostiary: launch.ServeOstiary(t, d.db, env...)}
	d.AddUser(t, email, password)
	d.addResource(t, "http://127.0.0.1:9/mcp", "Team Calendar", calendar)
	return d
}

// app is the app of a document.
func (d *documentSite) app(t *testing.T, clientID, redirectURI string) *app {
	t.Helper()
	return &app{t: t, site: d.site, id: clientID, redirectURI: redirectURI}
}

// discover publishes a document and returns its app.
func (d *documentSite) discover(t *testing.T, clientID, name, redirectURI string) *app {
	t.Helper()
	d.makers.publish(clientID, name, redirectURI, nil)
	return d.app(t, clientID, redirectURI)
}

// expire does what five minutes do: the server looks at the document again.
func (d *documentSite) expire(t *testing.T, a *app) {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: d.db})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	doc, err := db.GetClientDocument(t.Context(), a.id)
	if err != nil {
		t.Fatal(err)
	}
	doc.FreshUntil = doc.FetchedAt
	if err := db.PutClientDocument(t.Context(), doc); err != nil {
		t.Fatal(err)
	}
}

// words is the text of an element, its spaces made plain.
func words(b *tab, selector string) string {
	b.t.Helper()
	return strings.Join(strings.Fields(eval[string](b, `(document.querySelector(`+quote(selector)+`)?.textContent ?? '')`)), " ")
}

func quote(s string) string {
	b, _ := json.Marshal(s) // of a string: it cannot fail
	return string(b)
}

// fact is a row of the consent page: what stands beside its term, "" without one.
func fact(b *tab, term string) string {
	b.t.Helper()
	row := `[...document.querySelectorAll('.facts > div')].find(d => d.querySelector('dt').textContent === ` + quote(term) + `)`
	return strings.Join(strings.Fields(eval[string](b, `(`+row+`?.querySelector('dd').innerText ?? '')`)), " ")
}

// says holds an element of the page to these words, and the order they come in.
func says(b *tab, what, got string, want ...string) {
	b.t.Helper()
	rest := got
	for _, w := range want {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			b.t.Errorf("%s: %s says %q, want in it, in this order, %q", b.where(), what, got, want)
			return
		}
		rest = after
	}
}
