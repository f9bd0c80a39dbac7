package resource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// maxValues bounds how often one request may repeat resource.
const maxValues = 20

// Registry answers which resource a request means. The zero value of every
// switch is the strict one. It is safe for concurrent use.
type Registry struct {
	// Store keeps the registered resources. Required.
	Store Store
	// Issuer is the authorization server's issuer, which is never a resource (D7).
	Issuer string
	// Dev admits http loopback resources that have no row (D4).
	Dev bool
	// OriginMatch lets a bare origin stand for the one resource that lives on it (A24).
	OriginMatch bool
}

// Find returns the resource that the values of a request's resource parameter
// name (RFC 8707 §2, D5). Values that match one resource are one. Without any it
// is the default resource, or the only one (D6). Anything else is invalid_target.
func (g *Registry) Find(ctx context.Context, values []string) (Resource, error) {
	if len(values) > maxValues {
		return Resource{}, oauth.InvalidTarget("resource is repeated too often; name one resource")
	}
	canonical, err := canonicalAll(values)
	if err != nil {
		return Resource{}, err
	}
	list, err := g.Store.ListResources(ctx)
	if err != nil {
		return Resource{}, fmt.Errorf("list resources: %w", err)
	}
	if len(canonical) == 0 {
		return implied(list)
	}
	found, err := g.match(list, canonical[0])
	if err != nil {
		return Resource{}, err
	}
	for _, c := range canonical[1:] {
		other, err := g.match(list, c)
		if err != nil {
			return Resource{}, err
		}
		if other.Canonical != found.Canonical {
			return Resource{}, oauth.InvalidTarget("resource names more than one resource; a token is for one")
		}
	}
	return found, nil
}

func canonicalAll(values []string) ([]string, error) {
	var all []string
	for _, v := range values {
		c, err := oauth.CanonicalResource(v)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// implied is the resource of a request that names none (D6, A25).
func implied(list []Resource) (Resource, error) {
	for _, r := range list {
		if r.Default {
			return r, nil
		}
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return Resource{}, oauth.InvalidTarget("resource is required: send the identifier of the MCP server (RFC 8707)")
}

// match finds the resource of one canonical value: itself, else the nearest
// registered parent, else the one on its origin, else, in development mode, an
// unregistered one.
func (g *Registry) match(list []Resource, canonical string) (Resource, error) {
	best := -1
	for i, r := range list {
		if oauth.ResourceWithin(r.Canonical, canonical) && (best < 0 || len(r.Canonical) > len(list[best].Canonical)) {
			best = i
		}
	}
	if best >= 0 {
		return list[best], nil
	}
	if r, ok := g.onOrigin(list, canonical); ok {
		return r, nil
	}
	if r, ok := g.unregistered(canonical); ok {
		return r, nil
	}
	return Resource{}, oauth.InvalidTarget("resource is not known to this authorization server")
}

// onOrigin applies the origin rule of A24: some clients send the origin of the
// MCP server's URL instead of its identifier.
func (g *Registry) onOrigin(list []Resource, canonical string) (Resource, bool) {
	if !g.OriginMatch || origin(canonical) != canonical {
		return Resource{}, false
	}
	var found Resource
	n := 0
	for _, r := range list {
		if origin(r.Canonical) == canonical {
			found = r
			n++
		}
	}
	return found, n == 1
}

// unregistered makes the resource of development mode (D4): its identifier, and
// so the aud of its tokens, is its canonical form, without a trailing slash.
func (g *Registry) unregistered(canonical string) (Resource, bool) {
	if !g.Dev || !isLoopbackHTTP(canonical) || g.isIssuer(canonical) {
		return Resource{}, false
	}
	return Resource{Identifier: canonical, Canonical: canonical,
		Name: DefaultName(canonical), Unregistered: true}, true
}

// AllowsUnregistered reports whether the identifier may be used without a row:
// development mode and an http loopback resource (D4).
func (g *Registry) AllowsUnregistered(identifier string) bool {
	canonical, err := oauth.CanonicalResource(identifier)
	if err != nil {
		return false
	}
	_, ok := g.unregistered(canonical)
	return ok
}

// ByIdentifier returns the resource of a stored request or grant, or
// store.ErrNotFound when it was removed. In development mode an unregistered one
// is found again.
func (g *Registry) ByIdentifier(ctx context.Context, identifier string) (Resource, error) {
	canonical, err := oauth.CanonicalResource(identifier)
	if err != nil {
		return Resource{}, fmt.Errorf("stored resource: %w: %w", store.ErrNotFound, err)
	}
	r, err := g.Store.GetResource(ctx, canonical)
	if errors.Is(err, store.ErrNotFound) {
		if r, ok := g.unregistered(canonical); ok {
			return r, nil
		}
	}
	if err != nil {
		return Resource{}, fmt.Errorf("find resource: %w", err)
	}
	return r, nil
}

// SupportedScopes returns the scopes_supported of the server's metadata: the
// default scopes of the registered resources, each once, and offline_access (D26).
func (g *Registry) SupportedScopes(ctx context.Context) ([]string, error) {
	list, err := g.Store.ListResources(ctx)
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	seen := make(map[string]bool)
	var scopes []string
	for _, r := range list {
		for _, s := range r.DefaultScopes() {
			if !seen[s] {
				seen[s] = true
				scopes = append(scopes, s)
			}
		}
	}
	return append(scopes, oauth.OfflineAccess), nil
}

func (g *Registry) isIssuer(canonical string) bool { return equalsIssuer(g.Issuer, canonical) }

func equalsIssuer(issuer, canonical string) bool {
	c, err := oauth.CanonicalResource(issuer)
	return err == nil && c == canonical
}

// origin returns scheme and authority of a canonical resource.
func origin(canonical string) string {
	scheme, rest, _ := strings.Cut(canonical, "://")
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		rest = rest[:i]
	}
	return scheme + "://" + rest
}

// isLoopbackHTTP reports whether a canonical resource is plain http on this
// machine: localhost or a loopback address literal.
func isLoopbackHTTP(canonical string) bool {
	u, err := url.Parse(canonical)
	if err != nil || u.Scheme != "http" {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}
