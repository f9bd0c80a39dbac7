package metadata

import (
	"fmt"
	"net/url"
	"strings"
)

// Well-known path segments (RFC 8615).
const (
	wellKnown                 = "/.well-known/"
	suffixAuthorizationServer = "oauth-authorization-server"
	suffixOpenIDConfiguration = "openid-configuration"
	suffixProtectedResource   = "oauth-protected-resource"
	pathAuthorizationServer   = wellKnown + suffixAuthorizationServer
	pathOpenIDConfiguration   = wellKnown + suffixOpenIDConfiguration
	pathProtectedResource     = wellKnown + suffixProtectedResource
)

// AuthorizationServerPaths returns every path of the issuer's host at which
// clients ask for its RFC 8414 document: the well-known segment before the
// issuer's path (RFC 8414 §3.1) and after it, each with and without a trailing
// slash (A2).
func AuthorizationServerPaths(issuer string) ([]string, error) {
	return issuerPaths(issuer, pathAuthorizationServer)
}

// OpenIDConfigurationPaths returns the same for the OpenID document, which
// OpenID Connect Discovery 1.0 §4 puts after the issuer's path and RFC 8414 §5
// before it.
func OpenIDConfigurationPaths(issuer string) ([]string, error) {
	return issuerPaths(issuer, pathOpenIDConfiguration)
}

func issuerPaths(issuer, wellKnownPath string) ([]string, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("issuer %q is not an absolute URL", issuer)
	}
	base := strings.TrimSuffix(u.Path, "/")
	paths := []string{wellKnownPath + base, wellKnownPath + base + "/"}
	if base != "" {
		paths = append(paths, base+wellKnownPath, base+wellKnownPath+"/")
	}
	return paths, nil
}

// AuthorizationServerURLs returns where a client looks for the metadata of issuer, in
// the order of MCP's authorization specification (C1).
func AuthorizationServerURLs(issuer string) ([]string, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("issuer %q is not an absolute URL", issuer)
	}
	origin, base := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	urls := []string{origin + pathAuthorizationServer + base, origin + pathOpenIDConfiguration + base}
	if base != "" {
		urls = append(urls, origin+base+pathOpenIDConfiguration)
	}
	return urls, nil
}

// ProtectedResourceURL returns where the document of a resource lives: the
// well-known segment between its host and its path and query (RFC 9728 §3.1).
func ProtectedResourceURL(resource string) (string, error) {
	u, err := url.Parse(resource)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("resource %q is not an absolute URL", resource)
	}
	p := u.EscapedPath()
	if p == "/" {
		p = "" // RFC 9728 §3.1: the slash after the host is removed
	}
	s := u.Scheme + "://" + u.Host + pathProtectedResource + p
	if u.RawQuery != "" {
		s += "?" + u.RawQuery
	}
	return s, nil
}

// ProtectedResourcePaths returns the paths at which a resource serves its
// document: RFC 9728's, with and without a trailing slash, since some clients
// add one (A2's reason holds here too).
func ProtectedResourcePaths(resource string) ([]string, error) {
	u, err := url.Parse(resource)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("resource %q is not an absolute URL", resource)
	}
	base := strings.TrimSuffix(u.Path, "/")
	return []string{pathProtectedResource + base, pathProtectedResource + base + "/"}, nil
}
