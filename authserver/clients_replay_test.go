package authserver_test

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// jwksOfHost stands for the URL of the keys that the host of a document has.
const jwksOfHost = "keys of the host"

// TestClientsInWideUse replays what each client of the table sends, from the
// server's metadata to tokens, and what it does when they end: with a refresh,
// the same refresh from several processes, a grant that ended, and a
// registration that is gone. Whatever happens, a person gets it connected again.
func TestClientsInWideUse(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		w := newReplay(t, db)
		for _, p := range profiles() {
			w.sub(p.name, func(*testing.T) { w.play(p) })
		}
	})
}

// replay is a kit that plays clients, with the hosts at which they publish.
type replay struct {
	*kit
	key *testkit.ClientKey

	mu   sync.Mutex
	docs map[string]any // by host and path
	port string
}

func newReplay(t *testing.T, db *sqlstore.Store) *replay {
	t.Helper()
	w := &replay{docs: map[string]any{}, key: testkit.NewClientKey(t, "RS256", "k1")}
	var names []string
	for _, p := range profiles() {
		if p.host != "" && !slices.Contains(names, p.host) {
			names = append(names, p.host)
		}
	}
	host := testkit.NewHTTPSHost(t, w, names...)
	_, w.port, _ = net.SplitHostPort(host.Host)
	server := testkit.NewServerWithHosts(t, db, []*testkit.HTTPSHost{host})
	w.kit = &kit{Server: server, t: t, ctx: t.Context(), person: server.Person()}
	for _, identifier := range []string{rootResource, loneResource} {
		if _, err := w.App.Resources.Add(w.ctx, resource.Resource{Identifier: identifier, Name: "Files",
			Scopes: []resource.Scope{{Name: "files:read", Title: "See your files", Default: true}}}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// ServeHTTP serves the documents and keys of every host.
func (w *replay) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.Host)
	w.mu.Lock()
	doc, ok := w.docs[host+r.URL.Path]
	w.mu.Unlock()
	if !ok {
		http.NotFound(rw, r)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Cache-Control", "max-age=300")
	_ = json.NewEncoder(rw).Encode(doc)
}

// at returns a URL at a client's host. Its port is not 443, which no test may
// listen on.
func (w *replay) at(host, path string) string {
	return "https://" + net.JoinHostPort(host, w.port) + path
}

func (w *replay) publish(host, path string, doc any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.docs[host+path] = doc
}

// played is a profile with what it keeps between requests.
type played struct {
	profile
	app app
}

// play walks one client through all that it does.
func (w *replay) play(p profile) {
	w.t.Helper()
	w.meets(p.needs)
	c := &played{profile: p}
	w.becomeKnown(c)
	var last answer
	for _, redirect := range c.redirects {
		c.app.redirect = redirect
		last = w.getTokens(c)
		last = w.refreshAs(c, last)
	}
	w.endedGrant(c, last)
	w.forgotten(c)
}

// meets checks that the client finds what it looks for in the metadata.
func (w *replay) meets(needs metadata) {
	w.t.Helper()
	doc := w.metadata()
	for name, need := range needs {
		list, _ := doc[name].([]any)
		if doc[name] != need && !slices.Contains(list, need) {
			w.t.Fatalf("the client goes another way: %s is %v, it needs %v", name, doc[name], need)
		}
	}
}

func (w *replay) becomeKnown(c *played) {
	w.t.Helper()
	switch {
	case c.document != nil:
		doc := maps.Clone(c.document)
		c.app.id = w.at(c.host, c.path)
		doc["client_id"] = c.app.id
		if doc["jwks_uri"] == jwksOfHost {
			doc["jwks_uri"] = w.at(c.host, "/jwks.json")
			w.publish(c.host, "/jwks.json", json.RawMessage(testkit.JWKS(w.t, w.key)))
		}
		w.publish(c.host, c.path, doc)
	case c.dynamic != nil:
		w.registerAs(c)
	default:
		client, secret, err := w.App.Clients.Add(w.ctx, *c.added)
		if err != nil {
			w.t.Fatal(err)
		}
		c.app.id, c.app.secret = client.ID, secret.Reveal()
	}
}

// registerAs registers and reads the answer as the strictest of the clients do
// (A12): no null, no empty string, numbers that are numbers.
func (w *replay) registerAs(c *played) {
	w.t.Helper()
	body, err := json.Marshal(c.dynamic)
	if err != nil {
		w.t.Fatal(err)
	}
	got := w.raw("POST", "/register", string(body), w.header(c, "application/json"))
	var doc map[string]any
	if err := json.Unmarshal([]byte(got.raw), &doc); err != nil || got.status != http.StatusCreated {
		w.t.Fatalf("register: %d %s", got.status, got.raw)
	}
	w.sharesWith(c, got)
	for name, v := range doc {
		if v == nil || v == "" {
			w.t.Errorf("A12 %s is %#v", name, v)
		}
	}
	sent := registration.AuthClientSecretBasic // RFC 7591 §2: the default
	if method, ok := c.dynamic["token_endpoint_auth_method"].(string); ok {
		sent = method
	}
	echoed, _ := json.Marshal(doc["redirect_uris"])
	wanted, _ := json.Marshal(c.dynamic["redirect_uris"])
	if string(echoed) != string(wanted) || doc["token_endpoint_auth_method"] != sent || doc["application_type"] != c.dynamic["application_type"] {
		w.t.Errorf("registered as %s", got.raw)
	}
	var types []string
	for _, g := range doc["grant_types"].([]any) {
		types = append(types, g.(string))
	}
	if !slices.Equal(types, bothGrants) {
		w.t.Errorf("D23 grant_types %q", types)
	}
	secret, _ := doc["client_secret"].(string)
	_, issued := doc["client_id_issued_at"].(float64)
	_, expires := doc["client_secret_expires_at"].(float64)
	if (secret != "") == (sent == registration.AuthNone) || expires != (secret != "") || !issued {
		w.t.Errorf("A12 A13 registered as %s", got.raw)
	}
	c.app.id, c.app.secret = doc["client_id"].(string), secret
}

// sharesWith checks that the page of a client in a browser may read an answer.
func (w *replay) sharesWith(c *played, got answer) {
	w.t.Helper()
	if c.origin != "" && got.header.Get("Access-Control-Allow-Origin") != "*" {
		w.t.Errorf("A7 Access-Control-Allow-Origin %q", got.header.Get("Access-Control-Allow-Origin"))
	}
}

func (w *replay) header(c *played, contentType string) http.Header {
	h := http.Header{"Content-Type": {contentType}, "Accept": {"application/json"}}
	if c.origin != "" {
		h.Set("Origin", c.origin)
	}
	return h
}

// getTokens sends the person to allow the client, redeems the code and calls
// the MCP server.
func (w *replay) getTokens(c *played) answer {
	w.t.Helper()
	code := w.authorizeAs(c)
	form := values("grant_type", "authorization_code", "code", code, "redirect_uri", c.app.redirect, "code_verifier", c.secretVerifier())
	if c.resource != "" {
		form.Set("resource", c.resource)
	}
	got := w.askToken(c, form)
	w.checkTokens(c, got)
	if a := call(w.t, w.mcpServer(c.aud, nil), got.body.AccessToken, ""); a.Code != http.StatusOK {
		w.t.Errorf("the MCP server answers %d: %s", a.Code, a.Body)
	}
	return got
}

func (c *played) secretVerifier() string {
	if c.verifier != "" {
		return c.verifier
	}
	return verifier
}

// authorizeAs walks the pages and reads the response as the client does.
func (w *replay) authorizeAs(c *played) (code string) {
	w.t.Helper()
	back, err := w.person.Authorize(w.ctx, w.askAuthorize(c))
	if err != nil {
		w.t.Fatalf("at %s: %v", c.app.redirect, err)
	}
	q := back.Query()
	if !strings.HasPrefix(back.String(), c.app.redirect+"?") || !slices.Equal(q["iss"], []string{testkit.Issuer}) {
		w.t.Fatalf("response %s, want one iss at %s", back, c.app.redirect)
	}
	if state := q["state"]; c.state == "" && state != nil || c.state != "" && !slices.Equal(state, []string{c.state}) {
		w.t.Errorf("A31 state %q, want %q", state, c.state)
	}
	if c.takesCodeUndecoded {
		found := regexp.MustCompile(`[?&]code=([^&]+)`).FindStringSubmatch(back.String())
		return found[1]
	}
	return q.Get("code")
}

func (w *replay) askAuthorize(c *played) string {
	q := values("response_type", "code", "client_id", c.app.id, "redirect_uri", c.app.redirect,
		"code_challenge", challenge(c.secretVerifier()), "code_challenge_method", "S256")
	scope := c.scope
	if scope == allScopes {
		var all []string
		for _, s := range w.metadata()["scopes_supported"].([]any) {
			all = append(all, s.(string))
		}
		scope = strings.Join(all, " ")
	}
	for name, v := range map[string]string{"state": c.state, "resource": c.resource, "scope": scope} {
		if v != "" {
			q.Set(name, v)
		}
	}
	return w.URL("/authorize?" + changed(q, c.more).Encode())
}

// askToken asks the token endpoint as the client authenticates. x/oauth2 does so
// twice when the first way fails.
func (w *replay) askToken(c *played, form url.Values) answer {
	w.t.Helper()
	if c.auth != probesBasic {
		return w.askTokenBy(c, c.auth, form)
	}
	got := w.askTokenBy(c, probesBasic, form)
	if got.status == http.StatusOK {
		return got
	}
	if c.app.secret != "" {
		return w.askTokenBy(c, secretInBody, form)
	}
	return w.askTokenBy(c, inBody, form)
}

func (w *replay) askTokenBy(c *played, auth tokenAuth, form url.Values) answer {
	w.t.Helper()
	form, h := maps.Clone(form), w.header(c, formType)
	basic := func(id, secret string) {
		r := http.Request{Header: h}
		r.SetBasicAuth(id, secret)
	}
	switch auth {
	case inBody:
		form.Set("client_id", c.app.id)
	case probesBasic:
		basic(url.QueryEscape(c.app.id), url.QueryEscape(c.app.secret))
	case rawBasic:
		basic(c.app.id, c.app.secret)
	case encodedBasic:
		basic(url.QueryEscape(c.app.id), url.QueryEscape(c.app.secret))
		form.Set("client_id", c.app.id)
	case secretInBody:
		form.Set("client_id", c.app.id)
		form.Set("client_secret", c.app.secret)
	case byKey:
		form = keyApp{c.app, w.kit, w.key}.proven(form)
	}
	got := w.raw("POST", "/token", form.Encode(), h)
	w.sharesWith(c, got)
	return got
}

// checkTokens reads a token response as the strictest client does (A22).
func (w *replay) checkTokens(c *played, got answer) {
	w.t.Helper()
	want(w.t, got, http.StatusOK, "")
	if got.header.Get("Content-Type") != "application/json" || got.body.TokenType != "Bearer" || got.body.ExpiresIn <= 0 ||
		got.body.Scope == "" || got.body.RefreshToken == "" {
		w.t.Errorf("A22 response %s", got.raw)
	}
	if m := claims(w.t, got.body.AccessToken); m["aud"] != c.aud || m["client_id"] != c.app.id {
		w.t.Errorf("aud %v, client_id %v; want %s, %s", m["aud"], m["client_id"], c.aud, c.app.id)
	}
}

// refreshAs refreshes twice, each time from as many processes as share the
// token, and returns the last answer.
func (w *replay) refreshAs(c *played, got answer) answer {
	w.t.Helper()
	for range 2 {
		form := c.refreshForm(got)
		answers := make([]answer, max(1, c.refreshes.atOnce))
		for i := range answers {
			answers[i] = w.askToken(c, form)
			w.checkTokens(c, answers[i])
			if answers[i].body.RefreshToken != answers[0].body.RefreshToken {
				w.t.Error("A32 two processes got two successors")
			}
		}
		got = answers[0]
	}
	return got
}

func (c *played) refreshForm(got answer) url.Values {
	form := values("grant_type", "refresh_token", "refresh_token", got.body.RefreshToken)
	if c.refreshes.resource && c.resource != "" {
		form.Set("resource", c.resource)
	}
	scope := got.body.Scope
	if c.refreshes.offline && !slices.Contains(strings.Fields(scope), "offline_access") {
		scope += " offline_access"
	}
	if c.refreshes.granted {
		form.Set("scope", scope)
	}
	return form
}

// endedGrant ends the grant as "Disconnect" does: the client hears
// invalid_grant, on which each of them asks the person again with the
// registration that it has.
func (w *replay) endedGrant(c *played, got answer) {
	w.t.Helper()
	id, _ := claims(w.t, got.body.AccessToken)["grant_id"].(string)
	if ended, err := w.DB.EndGrant(w.ctx, id, grant.ReasonDisconnected, w.Clock.Now()); err != nil || !ended {
		w.t.Fatalf("end grant %q: %v, %v", id, ended, err)
	}
	want(w.t, w.askToken(c, c.refreshForm(got)), http.StatusBadRequest, "invalid_grant")
	w.getTokens(c)
}

// forgotten removes the registration, as losing the database would: the client
// hears invalid_client (A19), and what it does then leads to tokens.
func (w *replay) forgotten(c *played) {
	w.t.Helper()
	if c.added != nil {
		return // the operator removed what the operator added
	}
	got := w.getTokens(c)
	if _, err := w.App.Clients.Remove(w.ctx, c.app.id); err != nil {
		w.t.Fatal(err)
	}
	want(w.t, w.askToken(c, c.refreshForm(got)), http.StatusUnauthorized, "invalid_client")
	if old := c.app.id; c.dynamic != nil {
		if !c.registersAgain {
			w.isToldToStartAgain(c)
		}
		w.registerAs(c)
		if c.app.id == old {
			w.t.Error("a client_id came back")
		}
	}
	w.getTokens(c)
}

// isToldToStartAgain is how a person learns that a client is stuck (A20): at
// /authorize, from a page with no way out.
func (w *replay) isToldToStartAgain(c *played) {
	w.t.Helper()
	page := w.open(w.person, w.askAuthorize(c))
	wantPage(w.t, page, http.StatusBadRequest)
	if !strings.Contains(page.Body, c.app.id) || !strings.Contains(strings.ToLower(page.Body), "again") {
		w.t.Errorf("A20 the page does not say how to start again: %s", page.Body)
	}
}
