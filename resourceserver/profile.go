package resourceserver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// Profile is how an authorization server marks its access tokens, and so what
// keeps its other tokens out: ID tokens are signed by the same keys, and every
// application that a person signs in to has one.
type Profile int

// The profiles. Where a server can issue RFC 9068 tokens, let it: the others
// exist for servers that cannot, and each says what is lost.
const (
	// ProfileRFC9068 demands typ "at+jwt" (RFC 9068 §4). Ostiary and
	// node-oidc-provider issue such tokens, and others that are told to: Auth0 by
	// its RFC 9068 token profile, Keycloak 26.2 by a setting of each client.
	ProfileRFC9068 Profile = iota
	// ProfileKeycloak accepts typ "JWT" where the claim typ says "Bearer", which
	// Keycloak writes into access tokens and into nothing else. Another server's
	// tokens are not told apart by it.
	ProfileKeycloak
	// ProfileEntra accepts typ "JWT" where azp or appid names the client and scp
	// or roles is there, as in access tokens of Microsoft Entra; scopes are in
	// scp. An ID token with such claims, of an application that is both client
	// and API, would pass: register the API as an application of its own.
	ProfileEntra
	// ProfileUntypedJWT accepts any JWT of the issuer for this audience, with typ
	// "JWT" or without: nothing says that it is an access token. ID tokens and
	// logout tokens are refused only when they carry a claim that gives them away
	// (nonce, at_hash, c_hash, s_hash, events). Use it only when the issuer never
	// puts this server's audience into anything but access tokens.
	ProfileUntypedJWT
)

var profileNames = [...]string{"rfc9068", "keycloak", "entra", "untyped-jwt"}

// ParseProfile returns the profile that String names: rfc9068, keycloak, entra or
// untyped-jwt.
func ParseProfile(name string) (Profile, error) {
	i := slices.Index(profileNames[:], name)
	if i < 0 {
		return 0, fmt.Errorf("profile %q is none of %s", name, strings.Join(profileNames[:], ", "))
	}
	return Profile(i), nil
}

// String returns the profile's name as a configuration file has it.
func (p Profile) String() string {
	if p < 0 || int(p) >= len(profileNames) {
		return fmt.Sprintf("Profile(%d)", int(p))
	}
	return profileNames[p]
}

// allowsType reports whether a token whose JOSE header has typ may be an access
// token (RFC 8725 §3.11). Each profile takes RFC 9068's too, so that a server
// may be switched to it at any time.
func (p Profile) allowsType(header strictjson.Object) bool {
	switch {
	case header.Is("typ", oauth.TypeAccessToken), header.Is("typ", "application/"+oauth.TypeAccessToken):
		return true
	case p == ProfileRFC9068:
		return false
	case p == ProfileUntypedJWT && !header.Has("typ"):
		return true
	}
	return header.Is("typ", "JWT")
}

// foreignClaims are those of other kinds of JWT: ID tokens (OpenID Connect Core
// §2), and logout and security event tokens (RFC 8417).
var foreignClaims = [...]string{"nonce", "at_hash", "c_hash", "s_hash", "events"}

// isAccessToken applies the profile's marks among the claims.
func (p Profile) isAccessToken(c strictjson.Object) bool {
	switch p {
	case ProfileKeycloak:
		return c.Is("typ", "Bearer")
	case ProfileEntra:
		return (c.Has("azp") || c.Has("appid")) && (c.Has("scp") || c.Has("roles"))
	case ProfileUntypedJWT:
		return !slices.ContainsFunc(foreignClaims[:], c.Has)
	}
	return true
}

// scopeClaims are where the profile's scopes are by default.
func (p Profile) scopeClaims() []string {
	if p == ProfileEntra {
		return []string{"scp"}
	}
	return []string{"scope"}
}

// clientClaims name the client, best first: client_id (RFC 9068 §2.2), azp
// (OpenID; Keycloak's at+jwt has it alone), appid (Entra v1), cid (Okta).
var clientClaims = [...]string{"client_id", "azp", "appid", "cid"}

// clientOf returns the client's id, "" when the token does not say.
func clientOf(c strictjson.Object) string {
	for _, name := range clientClaims {
		if id, ok := c.Str(name); ok {
			return id
		}
	}
	return ""
}

// readScopes returns the token's scopes. Without Issuer.ScopeClaims RFC 9068's
// form is read alone (§2.2.3: a string of space-separated values). What cannot be
// read grants nothing, never everything (JW-20).
func (a *authority) readScopes(c strictjson.Object) []string {
	claims, arrays := a.ScopeClaims, true
	if claims == nil {
		claims, arrays = a.Profile.scopeClaims(), a.Profile == ProfileEntra
	}
	var all []string
	for _, name := range claims {
		for _, s := range scopesOf(c, name, arrays) {
			if s = a.ScopePrefix + s; !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

func scopesOf(c strictjson.Object, name string, arrays bool) []string {
	raw, ok := c.Str(name)
	if !ok && arrays {
		if list := c.Strs(name); len(list) <= maxScopes && !slices.ContainsFunc(list, isNoScope) {
			return list
		}
	}
	scopes, err := oauth.ParseScope(raw)
	if err != nil {
		return nil
	}
	return scopes
}

// maxScopes bounds the scopes of an array, as oauth.ParseScope does a string's.
const maxScopes = 200

func isNoScope(s string) bool { return !oauth.IsScopeToken(s) }
