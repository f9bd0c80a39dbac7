package resourceserver

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Issuer is an authorization server whose tokens are accepted. The zero value of
// every optional field is the safe default.
type Issuer struct {
	// Identifier is the issuer identifier (RFC 8414 §2), exactly as the server's
	// metadata and tokens carry it, with its trailing slash if it has one: https,
	// or http on a loopback host. Required.
	Identifier string
	// Profile is how the server marks its access tokens. Default ProfileRFC9068.
	Profile Profile
	// Algorithms are the signature algorithms accepted from this issuer. Nil means
	// Options.Algorithms.
	Algorithms []string
	// JWKSURI is where the keys are. Default: jwks_uri of the issuer's metadata
	// (RFC 8414, or else OpenID Connect Discovery).
	JWKSURI string
	// JWKS is the issuer's JWK set itself (RFC 7517 §5). When it is given nothing
	// is fetched, and a new key of the issuer needs a new Server.
	JWKS []byte
	// AllowAudiences are values of aud, compared byte by byte, that are accepted
	// as if they were Options.Resource: for issuers that cannot put a URL there,
	// such as Entra, whose aud is the application's id. Whoever gets a token for
	// such an audience at this issuer gets in here, so it must name this server
	// alone.
	AllowAudiences []string
	// ScopeClaims are the claims that list scopes, each a string of values
	// separated by spaces or an array of strings; all of them count. Nil means
	// the profile's. Auth0 with role-based access needs "permissions".
	ScopeClaims []string
	// ScopePrefix is put before each scope of a token. Entra's clients ask for
	// "api://notes/read" and get a token that says "read": with the prefix
	// "api://notes/", Options name scopes as clients ask for them.
	ScopePrefix string
	// Introspection asks the issuer about tokens (RFC 7662). Nil: never, so tokens
	// that are not JWTs are refused. One issuer at most may have it, since nobody
	// can tell whose an opaque token is, and it is shown to nobody else.
	Introspection *Introspection
}

// trusted returns the issuers that o names, in its order: the first is the one
// that clients use (M4).
func (o Options) trusted() ([]Issuer, error) {
	switch {
	case o.Issuer != "" && len(o.Issuers) > 0:
		return nil, errors.New("Options.Issuer and Options.Issuers exclude one another")
	case len(o.Issuers) == 0:
		return []Issuer{{Identifier: o.Issuer}}, checkIdentifier(o.Issuer)
	}
	var errs []error
	asking := 0
	for i, is := range o.Issuers {
		errs = append(errs, is.check())
		if slices.ContainsFunc(o.Issuers[:i], func(other Issuer) bool { return other.Identifier == is.Identifier }) {
			errs = append(errs, fmt.Errorf("Options.Issuers has %q twice", is.Identifier))
		}
		if is.Introspection != nil {
			asking++
		}
	}
	if asking > 1 {
		errs = append(errs, errors.New("more than one of Options.Issuers has Introspection"))
	}
	return slices.Clone(o.Issuers), errors.Join(errs...)
}

func (i Issuer) check() error {
	errs := []error{checkIdentifier(i.Identifier)}
	if i.Profile < 0 || int(i.Profile) >= len(profileNames) {
		errs = append(errs, fmt.Errorf("Issuer.Profile %d is not known", int(i.Profile)))
	}
	_, err := parseAlgorithms(i.Algorithms)
	errs = append(errs, err)
	if i.JWKSURI != "" && i.JWKS != nil {
		errs = append(errs, errors.New("Issuer.JWKSURI and Issuer.JWKS exclude one another"))
	}
	if i.JWKSURI != "" {
		errs = append(errs, checkEndpoint("jwks_uri", i.JWKSURI, i.Identifier))
	}
	if i.JWKS != nil {
		if keys, err := parseKeys(i.JWKS); err != nil || len(keys) == 0 {
			errs = append(errs, fmt.Errorf("Issuer.JWKS has no usable key (%w)", errors.Join(err, errNoKeys)))
		}
	}
	if slices.Contains(i.AllowAudiences, "") || slices.Contains(i.AllowAudiences, i.Identifier) {
		// AU-09: a token for the issuer itself is for nobody else
		errs = append(errs, errors.New("Issuer.AllowAudiences has an empty value or the issuer itself"))
	}
	if i.ScopeClaims != nil && len(i.ScopeClaims) == 0 || slices.Contains(i.ScopeClaims, "") {
		errs = append(errs, errors.New("Issuer.ScopeClaims is empty: leave it nil for the default"))
	}
	if i.ScopePrefix != "" && !oauth.IsScopeToken(i.ScopePrefix) {
		errs = append(errs, fmt.Errorf("Issuer.ScopePrefix %q cannot stand in a scope (RFC 6749 §3.3)", i.ScopePrefix))
	}
	if i.Introspection != nil {
		errs = append(errs, i.Introspection.check(i.Identifier))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("issuer %q: %w", i.Identifier, err)
	}
	return nil
}

// identifiers returns those of the issuers, for authorization_servers.
func identifiers(issuers []Issuer) []string {
	var ids []string
	for _, i := range issuers {
		ids = append(ids, i.Identifier)
	}
	return ids
}

func checkIdentifier(issuer string) error {
	u, err := url.Parse(issuer)
	switch {
	case issuer == "":
		return errors.New("Options.Issuer is required")
	case err != nil || u.Host == "" || u.User != nil || strings.ContainsAny(issuer, "?#"):
		return fmt.Errorf("Options.Issuer %q must be a URL with a host and without query, fragment or userinfo (RFC 8414 §2)", issuer)
	case !isSecure(u):
		return fmt.Errorf("Options.Issuer %q must use https, or http on a loopback host", issuer)
	}
	return nil
}

// checkEndpoint refuses a URL of the issuer's that is not as safe as the issuer:
// a public one may not send us to a service of this machine (JW-22).
func checkEndpoint(name, endpoint, issuer string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.User != nil || !isSecure(u) {
		return fmt.Errorf("%s %q is not an https URL", name, endpoint)
	}
	if u.Scheme == "http" && strings.HasPrefix(issuer, "https:") {
		return fmt.Errorf("%s %q is less secure than the issuer", name, endpoint)
	}
	return nil
}
