package authclient

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/metadata"
)

// place is what discovery found of the MCP server.
type place struct {
	// resource is the resource parameter, as the document writes it (rule C2); "" for
	// a server of MCP 2025-03-26, which knows none.
	resource string
	// scopes is scopes_supported of the resource.
	scopes []string
	// bound is dpop_bound_access_tokens_required.
	bound  bool
	issuer string
	// server is nil until asked for.
	server *authorizationServer
}

// discover finds the MCP server's authorization server: the document that the
// challenge names, that of the server's path, that of its root (RFC 9728 §3), then
// the rules of MCP 2025-03-26.
func (c *Client) discover(ctx context.Context, ch challenge) (*place, error) {
	p, err := c.findResource(ctx, ch)
	if err != nil {
		return nil, err
	}
	if p != nil {
		p.server, err = c.endpoint.metadataOf(ctx, p.issuer)
	} else {
		p, err = c.legacyPlace(ctx)
	}
	if err != nil {
		return nil, err
	}
	c.o.Log.InfoContext(ctx, "found the authorization server", slog.String("issuer", p.issuer),
		slog.String("resource", p.resource), slog.Bool("legacy", p.server.Legacy))
	return p, nil
}

// documentPlace is where a document may be and of whom it must be there.
type documentPlace struct {
	url string
	of  []string
}

// findResource returns what the resource's document says, nil when there is none
// anywhere. Only 4xx means that there is none: any other failure is final, so that
// nobody can steer a client to a weaker rule.
func (c *Client) findResource(ctx context.Context, ch challenge) (*place, error) {
	places, err := c.documentPlaces(ch)
	if err != nil {
		return nil, err
	}
	const what = "protected resource metadata"
	for _, at := range places {
		a, err := c.endpoint.get(ctx, what, at.url, true)
		if err != nil {
			return nil, err
		}
		if isAbsent(a.status) {
			continue
		}
		if a.status != http.StatusOK {
			return nil, fmt.Errorf("the %s at %s answered %d", what, quoted(at.url), a.status)
		}
		return c.readResource(a.body, at)
	}
	return nil, nil
}

func isAbsent(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusTooManyRequests
}

// documentPlaces lists the places in the order of MCP's authorization specification
// (rule C1).
func (c *Client) documentPlaces(ch challenge) ([]documentPlace, error) {
	server, root := c.server.String(), c.server.Scheme+"://"+c.server.Host
	path, err := metadata.ProtectedResourceURL(server)
	if err != nil {
		return nil, err
	}
	rootPath, err := metadata.ProtectedResourceURL(root)
	if err != nil {
		return nil, err
	}
	var places []documentPlace
	if ch.resourceMetadata != "" {
		u, err := c.endpoint.checkURL("resource_metadata URL", ch.resourceMetadata)
		if err != nil {
			return nil, err
		}
		if !sameOrigin(u, c.server) { // MM-10: nobody else speaks for the server
			return nil, refused("the server's challenge names metadata on another origin, %s", quoted(origin(u)))
		}
		at := documentPlace{u.String(), []string{server}}
		if at.url == rootPath {
			at.of = []string{root, server}
		}
		places = append(places, at)
	}
	places = append(places, documentPlace{path, []string{server}})
	if rootPath != path {
		// the root's own document, or one that names the very server
		places = append(places, documentPlace{rootPath, []string{root, server}})
	}
	return places, nil
}

// readResource applies RFC 9728 §3.3: of a document that is of another resource,
// nothing may be used (MM-10).
func (c *Client) readResource(body []byte, at documentPlace) (*place, error) {
	o, err := readObject(body)
	if err != nil {
		return nil, fmt.Errorf("protected resource metadata at %s: %w", quoted(at.url), err)
	}
	var doc metadata.ProtectedResource
	for _, resource := range c.acceptable(at.of) {
		if doc, err = metadata.ParseProtectedResource(body, resource); err == nil {
			break
		}
	}
	if err != nil {
		return nil, refused("%s", theirs(err.Error()))
	}
	p := &place{resource: doc.Resource, bound: string(o.Get("dpop_bound_access_tokens_required")) == "true"}
	for _, s := range doc.ScopesSupported {
		if oauth.IsScopeToken(s) {
			p.scopes = append(p.scopes, s)
		}
	}
	if p.issuer, err = c.chooseIssuer(doc.AuthorizationServers); err != nil {
		return nil, err
	}
	return p, nil
}

// acceptable adds the paths above the server where the caller allows them.
func (c *Client) acceptable(of []string) []string {
	if !c.o.AllowParentResource {
		return of
	}
	list, u := slices.Clone(of), *c.server
	u.RawQuery = ""
	for path := strings.TrimSuffix(u.Path, "/"); path != ""; {
		path = path[:strings.LastIndex(path, "/")]
		u.Path, u.RawPath = path, ""
		list = append(list, u.String())
	}
	return list
}

// chooseIssuer takes the authorization server for which the caller has a client or a
// credential, otherwise the first.
func (c *Client) chooseIssuer(issuers []string) (string, error) {
	if len(issuers) == 0 {
		return "", refused("the server's metadata names no authorization server")
	}
	for _, issuer := range issuers {
		if c.knows(issuer) {
			return issuer, nil
		}
	}
	return issuers[0], nil
}

func (c *Client) knows(issuer string) bool {
	if c.o.Machine != nil {
		return c.o.Machine.issuer() == issuer
	}
	return slices.ContainsFunc(c.o.Registered, func(r RegisteredClient) bool { return c.sameIssuer(r.Issuer, issuer) })
}

// sameIssuer compares as bytes (RFC 8414 §3.3), but for the slash that the caller
// tolerates.
func (c *Client) sameIssuer(a, b string) bool {
	return a == b || c.o.TolerateIssuerSlash && strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// legacyPlace applies MCP 2025-03-26: the origin of the server is the authorization
// server, and without a document it has the default endpoints.
func (c *Client) legacyPlace(ctx context.Context) (*place, error) {
	issuer := c.server.Scheme + "://" + c.server.Host
	p := &place{issuer: issuer}
	doc, err := c.endpoint.findMetadata(ctx, issuer)
	if err != nil {
		return nil, err
	}
	if doc == nil {
		p.server = &authorizationServer{Legacy: true, AuthorizationServer: metadata.AuthorizationServer{Issuer: issuer,
			AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token", RegistrationEndpoint: issuer + "/register"}}
		return p, nil
	}
	p.server = doc
	return p, nil
}
