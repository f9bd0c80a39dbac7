package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Step is one thing that a client does, and what came of it. The last one is
// Broken where the client stops.
type Step struct {
	State State  `json:"state"`
	Text  string `json:"text"`
}

// player walks as one client does, by its row in the table.
type player struct {
	x      *examination
	client Client
	steps  []Step
}

// replay walks from the first request to the registration, which is not sent: the
// checks have looked at the endpoints.
func (x *examination) replay(ctx context.Context) []Step {
	p := &player{x: x, client: x.client()}
	p.walk(ctx)
	for i := range p.steps {
		p.steps[i].Text = x.secrets.clean(p.steps[i].Text)
	}
	return p.steps
}

// do notes a step; stop one at which the client gives up, and returns false.
func (p *player) do(format string, args ...any) {
	p.steps = append(p.steps, Step{OK, fmt.Sprintf(format, args...)})
}

func (p *player) stop(format string, args ...any) bool {
	p.steps = append(p.steps, Step{Broken, fmt.Sprintf(format, args...)})
	return false
}

func (p *player) walk(ctx context.Context) {
	issuer := p.x.o.URL
	if p.x.kind == KindServer {
		var found bool
		if issuer, found = p.server(ctx); !found {
			return
		}
	}
	d, found := p.metadata(ctx, issuer)
	if !found || !p.pkce(d) {
		return
	}
	p.register(d)
}

// server asks the MCP server and finds its issuer.
func (p *player) server(ctx context.Context) (issuer string, found bool) {
	e := p.x.unauthorized(ctx)
	if p.client.Walk.First == http.MethodGet {
		e = p.x.unauthorizedGet(ctx)
	}
	if e.err != nil || e.status != http.StatusUnauthorized {
		return "", p.stop("%s: %s. It does not begin to log in", e.asked(), e.came())
	}
	p.do("%s: 401", e.asked())
	d, found := p.resource(ctx, p.named(e))
	if !found {
		return "", false
	}
	if d == nil {
		p.do("No resource metadata: it takes the origin of the MCP server for the authorization server")
		return p.x.target.Scheme + "://" + p.x.target.Host, true
	}
	list := d.list("authorization_servers")
	if len(list) == 0 {
		return "", p.stop("authorization_servers is empty")
	}
	p.do("Uses the first authorization server, %s", list[0])
	return list[0], true
}

// named is the resource_metadata that this client takes from a 401.
func (p *player) named(e *exchange) string {
	values := e.header.Values("Www-Authenticate")
	if len(values) == 0 {
		return ""
	}
	if p.client.Walk.Challenge == "first" {
		if values = values[:1]; !strings.HasPrefix(strings.ToLower(values[0]), "bearer ") {
			p.do("Reads the first challenge alone, which is not Bearer")
			return ""
		}
	}
	for _, v := range values {
		list, err := parseChallenges(v)
		if err != nil {
			continue
		}
		for _, c := range list {
			raw := c.params["resource_metadata"]
			u, err := url.Parse(raw)
			switch {
			case !strings.EqualFold(c.scheme, "Bearer") || raw == "" || err != nil:
			case p.client.Walk.Named == "same origin" && !sameOrigin(u, p.x.target):
				p.do("Ignores resource_metadata %s: another origin", raw)
			default:
				return raw
			}
		}
	}
	return ""
}

// resource tries the places for resource metadata. A nil document with true is a
// client that goes on without one.
func (p *player) resource(ctx context.Context, named string) (document, bool) {
	places := map[string]string{"named": named}
	for _, f := range resourceMetadataURLs(p.x.target) {
		places[f.name] = f.url
	}
	var asked []string
	for _, place := range p.client.Walk.Places {
		u := places[place]
		if u == "" || slices.Contains(asked, u) || place != "named" && named != "" && p.client.Walk.NamedAlone {
			continue
		}
		asked = append(asked, u)
		e := p.x.document(ctx, u)
		d := parseDocument(e.body)
		if e.err == nil && e.status == http.StatusOK {
			if d == nil {
				return nil, p.stop("GET %s: 200, but no JSON object", u)
			}
			if !p.isOf(d.text("resource")) {
				return nil, p.stop("GET %s: 200, but resource is %q", u, d.text("resource"))
			}
			p.do("GET %s: 200, resource %s", u, d.text("resource"))
			return d, true
		}
		switch {
		case passes(p.client.Walk.Passes, e):
			p.do("GET %s: %s", u, short(e))
		case p.client.Walk.Fails == "origin":
			p.do("GET %s: %s", u, short(e))
			return nil, true
		default:
			return nil, p.stop("GET %s: %s. It does not look further", u, short(e))
		}
	}
	if p.client.Walk.Without == "origin" {
		return nil, true
	}
	return nil, p.stop("No resource metadata")
}

// isOf compares as this client does.
func (p *player) isOf(got string) bool {
	switch p.client.Walk.Identity {
	case "exact":
		return got == p.x.o.URL || trimSlash(got) == trimSlash(p.x.o.URL) && strings.Count(got, "/") <= 3
	case "parent":
		parent, err := oauth.CanonicalResource(got)
		child, err2 := oauth.CanonicalResource(p.x.o.URL)
		return err == nil && err2 == nil && oauth.ResourceWithin(parent, child)
	}
	return true
}

// passes reports whether a status lets a client look at the next place.
func passes(list []string, e *exchange) bool {
	if e.err != nil {
		return false
	}
	status := strconv.Itoa(e.status)
	return slices.Contains(list, status) || slices.Contains(list, status[:1]+"xx")
}

func (p *player) metadata(ctx context.Context, issuer string) (document, bool) {
	for _, f := range issuerForms(issuer) {
		if !slices.Contains(p.client.Walk.Forms, f.name) {
			continue
		}
		e := p.x.document(ctx, f.url)
		if e.err == nil && e.status == http.StatusOK {
			d := parseDocument(e.body)
			if d == nil {
				return nil, p.stop("GET %s: 200, but no JSON object", f.url)
			}
			if got := d.text("issuer"); !p.isIssuer(got, issuer) {
				return nil, p.stop("GET %s: 200, but issuer is %q, not %q", f.url, got, issuer)
			}
			p.do("GET %s: 200, issuer %s", f.url, d.text("issuer"))
			return d, true
		}
		if !passes(p.client.Walk.FormPasses, e) {
			return nil, p.stop("GET %s: %s. It does not look further", f.url, short(e))
		}
		p.do("GET %s: %s, looks further", f.url, short(e))
	}
	return nil, p.stop("No authorization server metadata: it guesses /authorize, /token and /register, which answer nothing here")
}

func (p *player) isIssuer(got, want string) bool {
	switch p.client.Walk.Issuer {
	case "exact":
		return got == want
	case "slash":
		return trimSlash(got) == trimSlash(want)
	}
	return true
}

func (p *player) pkce(d document) bool {
	listed := d.has("code_challenge_methods_supported")
	offered := slices.Contains(d.list("code_challenge_methods_supported"), "S256")
	if !offered && (p.client.Walk.PKCE == "required" || p.client.Walk.PKCE == "when listed" && listed) {
		return p.stop("%s: it refuses to go on without S256", d.member("code_challenge_methods_supported"))
	}
	p.do("Goes on with PKCE, S256")
	return true
}

// register says which way it would get its client_id.
func (p *player) register(d document) {
	for _, way := range p.client.Registration {
		switch {
		case way == "cimd" && p.client.Document != "" && d.is("client_id_metadata_document_supported") &&
			slices.Contains(d.list("token_endpoint_auth_methods_supported"), "none"):
			p.do("Is the client %s", p.client.Document)
			return
		case way == "dcr" && d.text("registration_endpoint") != "":
			p.do("Registers at %s", d.text("registration_endpoint"))
			return
		}
	}
	p.stop("No way to register: it asks the person for a client_id")
}
