package registration

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// Bounds of client metadata.
const (
	// MaxMetadata bounds a metadata document, in bytes.
	MaxMetadata = 64 << 10

	maxRedirectURIs = 20  // DR-05
	maxContacts     = 10  // entries of contacts
	maxWord         = 256 // length of any other short string
)

// ParseClientMetadata reads and checks the metadata a client sends about itself
// (RFC 7591 §2) and returns what is stored of it: defaults filled in, grant and
// response types narrowed to those a self-registered client may have (D23), the
// name normalised. Unknown members are ignored (DR-07). Everything refused is
// invalid_redirect_uri or invalid_client_metadata (RFC 7591 §3.2.2).
func ParseClientMetadata(doc []byte) (ClientMetadata, error) {
	members, err := readObject(doc)
	if err != nil {
		return ClientMetadata{}, err
	}
	m, err := members.metadata()
	if err != nil {
		return ClientMetadata{}, err
	}
	return m, m.normalize(selfRegistered())
}

// Hash identifies the metadata: a remembered consent is bound to it.
func (m ClientMetadata) Hash() string {
	b, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("registration: marshal metadata: %v", err)) // strings and lists of strings
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// members are the members of a JSON object by their exact names. encoding/json
// would fold the case of names when filling a struct, and keep the last of two
// equal ones.
type members map[string]json.RawMessage

// readObject reads one JSON object and nothing after it, in valid UTF-8 and
// without a repeated member.
func readObject(doc []byte) (members, error) {
	if len(doc) > MaxMetadata {
		return nil, oauth.InvalidClientMetadata("the document is larger than %d bytes", MaxMetadata)
	}
	list, err := strictjson.ReadObject(doc, nil, strictjson.Small)
	switch {
	case errors.Is(err, strictjson.ErrRepeated):
		return nil, oauth.InvalidClientMetadata("the document names a member twice")
	case errors.Is(err, strictjson.ErrTrailing):
		return nil, oauth.InvalidClientMetadata("something follows the JSON object")
	case errors.Is(err, strictjson.ErrEncoding):
		return nil, oauth.InvalidClientMetadata("the document is not valid UTF-8")
	case errors.Is(err, strictjson.ErrBounds):
		return nil, oauth.InvalidClientMetadata("the JSON document has too many members, or nests too deeply")
	case err != nil:
		return nil, oauth.InvalidClientMetadata("the document is not a JSON object").With(err)
	}
	return membersOf(list), nil
}

func membersOf(list strictjson.Object) members {
	m := make(members, len(list))
	for _, member := range list {
		m[string(member.Name)] = json.RawMessage(member.Value)
	}
	return m
}

// metadata fills the struct, refusing members of the wrong type.
func (m members) metadata() (c ClientMetadata, err error) {
	err = errors.Join(
		m.stringList("redirect_uris", &c.RedirectURIs, oauth.InvalidRedirectURI),
		m.stringList("grant_types", &c.GrantTypes, oauth.InvalidClientMetadata),
		m.stringList("response_types", &c.ResponseTypes, oauth.InvalidClientMetadata),
		m.stringList("contacts", &c.Contacts, oauth.InvalidClientMetadata),
		m.string("token_endpoint_auth_method", &c.TokenEndpointAuthMethod, maxWord),
		m.string("client_name", &c.ClientName, MaxMetadata),
		m.string("client_uri", &c.ClientURI, MaxMetadata),
		m.string("logo_uri", &c.LogoURI, MaxMetadata),
		m.string("tos_uri", &c.TosURI, MaxMetadata),
		m.string("policy_uri", &c.PolicyURI, MaxMetadata),
		m.string("scope", &c.Scope, MaxMetadata),
		m.string("application_type", &c.ApplicationType, maxWord),
		m.string("software_id", &c.SoftwareID, maxWord),
		m.string("software_version", &c.SoftwareVersion, maxWord),
		m.string("jwks_uri", &c.JWKSURI, MaxMetadata),
		m.string("token_endpoint_auth_signing_alg", &c.TokenEndpointAuthSigningAlg, maxWord),
	)
	if raw := m["jwks"]; string(raw) != "null" {
		c.JWKS = raw // checkKeys reads it
	}
	var first *oauth.Error
	if errors.As(err, &first) {
		return ClientMetadata{}, first
	}
	return c, nil
}

// string reads an optional string member; null counts as absent, which some
// clients send for it.
func (m members) string(name string, dest *string, max int) error {
	raw, ok := m[name]
	switch {
	case !ok:
		return nil
	case json.Unmarshal(raw, dest) != nil:
		return oauth.InvalidClientMetadata("%s must be a string", name)
	case len(*dest) > max:
		return oauth.InvalidClientMetadata("%s is longer than %d bytes", name, max)
	case strings.ContainsRune(*dest, 0):
		return oauth.InvalidClientMetadata("%s must not have a null character", name)
	}
	return nil
}

func (m members) has(name string) bool {
	_, ok := m[name]
	return ok
}

// stringList reads an optional list of strings; fail makes the error.
func (m members) stringList(name string, dest *[]string, fail func(string, ...any) *oauth.Error) error {
	if raw, ok := m[name]; ok && json.Unmarshal(raw, dest) != nil {
		return fail("%s must be a list of strings", name)
	}
	return nil
}

// rules are what differs between clients that register themselves and clients
// that the operator adds.
type rules struct {
	operator bool
	grants   []string
}

func selfRegistered() rules {
	return rules{grants: []string{GrantAuthorizationCode, GrantRefreshToken}} // D23
}

func operatorAdded() rules {
	return rules{operator: true, grants: []string{GrantAuthorizationCode, GrantRefreshToken, GrantClientCredentials}}
}

// normalize checks the metadata, fills in defaults and narrows what is listed.
func (m *ClientMetadata) normalize(r rules) error {
	for _, step := range []func(rules) error{m.checkAuthMethod, m.checkKeys, m.narrowGrants, m.narrowResponses, m.checkRedirectURIs, m.checkScope} {
		if err := step(r); err != nil {
			return err
		}
	}
	m.ClientName = NormalizeName(m.ClientName)
	m.ApplicationType = cleanText(m.ApplicationType, maxWord)
	m.SoftwareID = cleanText(m.SoftwareID, maxWord)
	m.SoftwareVersion = cleanText(m.SoftwareVersion, maxWord)
	for _, uri := range []*string{&m.ClientURI, &m.LogoURI, &m.TosURI, &m.PolicyURI} {
		if !isLink(*uri) {
			*uri = "" // a claim for people that we would not show; RFC 7591 §3.2.1 lets us leave it out
		}
	}
	if m.Contacts = cleanList(m.Contacts); len(m.Contacts) > maxContacts {
		return oauth.InvalidClientMetadata("contacts has more than %d entries", maxContacts)
	}
	return nil
}

// checkAuthMethod applies RFC 7591 §2: without a method the default is
// client_secret_basic (A13).
func (m *ClientMetadata) checkAuthMethod(rules) error {
	switch m.TokenEndpointAuthMethod {
	case "":
		m.TokenEndpointAuthMethod = AuthClientSecretBasic
	case AuthNone, AuthClientSecretBasic, AuthClientSecretPost, AuthPrivateKeyJWT:
	default:
		return oauth.InvalidClientMetadata("token_endpoint_auth_method must be none, client_secret_basic, client_secret_post or private_key_jwt")
	}
	return nil
}

// checkKeys applies RFC 7591 §2 to jwks and jwks_uri. Clients that authenticate
// otherwise have no use for keys here; theirs are left out.
func (m *ClientMetadata) checkKeys(rules) error {
	if m.TokenEndpointAuthMethod != AuthPrivateKeyJWT {
		m.JWKS, m.JWKSURI, m.TokenEndpointAuthSigningAlg = nil, "", ""
		return nil
	}
	if alg := m.TokenEndpointAuthSigningAlg; alg != "" && !slices.Contains(AssertionAlgorithms(), alg) {
		return oauth.InvalidClientMetadata("token_endpoint_auth_signing_alg must be one of %s", strings.Join(AssertionAlgorithms(), ", "))
	}
	switch {
	case (len(m.JWKS) > 0) == (m.JWKSURI != ""):
		return oauth.InvalidClientMetadata("private_key_jwt needs one of jwks and jwks_uri")
	case m.JWKSURI != "":
		if !isLink(m.JWKSURI) || strings.Contains(m.JWKSURI, "#") {
			return oauth.InvalidClientMetadata("jwks_uri must be an https URL without userinfo and fragment")
		}
		return nil
	}
	keys, err := parseJWKS(m.JWKS)
	if err != nil {
		return err
	}
	if alg := m.TokenEndpointAuthSigningAlg; alg != "" && !keys.canSign(alg) {
		return oauth.InvalidClientMetadata("jwks has no key that can sign with %s, the token_endpoint_auth_signing_alg", alg)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, m.JWKS); err != nil {
		return fmt.Errorf("compact jwks: %w", err)
	}
	m.JWKS = compact.Bytes()
	return nil
}

// narrowGrants keeps the grant types the client may have. A client that lists
// none gets both (D8): it would otherwise lose its session each time an access
// token expires.
func (m *ClientMetadata) narrowGrants(r rules) error {
	if len(m.GrantTypes) == 0 {
		m.GrantTypes = []string{GrantAuthorizationCode, GrantRefreshToken}
		return nil
	}
	m.GrantTypes = keep(m.GrantTypes, r.grants)
	switch {
	case slices.Contains(m.GrantTypes, GrantAuthorizationCode):
	case r.operator && slices.Contains(m.GrantTypes, GrantClientCredentials):
	default:
		return oauth.InvalidClientMetadata("grant_types must contain authorization_code; the other types are for clients that the operator adds")
	}
	if slices.Contains(m.GrantTypes, GrantClientCredentials) && m.TokenEndpointAuthMethod == AuthNone {
		// RFC 6749 §4.4: only for confidential clients
		return oauth.InvalidClientMetadata("grant_types client_credentials needs a client with a secret or keys")
	}
	return nil
}

func (m *ClientMetadata) narrowResponses(rules) error {
	if len(m.ResponseTypes) == 0 {
		m.ResponseTypes = []string{"code"}
	}
	m.ResponseTypes = keep(m.ResponseTypes, []string{"code"})
	if !slices.Contains(m.GrantTypes, GrantAuthorizationCode) {
		m.ResponseTypes = []string{}
		return nil
	}
	if len(m.ResponseTypes) == 0 {
		return oauth.InvalidClientMetadata("response_types must contain code")
	}
	return nil
}

// checkRedirectURIs refuses the whole registration for one bad URI, and says
// which (A10).
func (m *ClientMetadata) checkRedirectURIs(r rules) error {
	if !slices.Contains(m.GrantTypes, GrantAuthorizationCode) {
		m.RedirectURIs = nil
		return nil
	}
	if n := len(m.RedirectURIs); n == 0 || n > maxRedirectURIs {
		return oauth.InvalidRedirectURI("redirect_uris must list 1 to %d URIs", maxRedirectURIs)
	}
	policy := RedirectPolicy{Public: m.TokenEndpointAuthMethod == AuthNone, Operator: r.operator}
	var stored []string
	for i, raw := range m.RedirectURIs {
		uri, err := CheckRedirectURI(raw, policy)
		var e *oauth.Error
		if errors.As(err, &e) {
			return oauth.InvalidRedirectURI("redirect_uris[%d]: %s", i, e.Description).With(e.Err)
		}
		if !slices.Contains(stored, uri) {
			stored = append(stored, uri)
		}
	}
	m.RedirectURIs = stored
	return nil
}

// checkScope keeps the scope-tokens once each. Which of them exist is asked at
// each request; a registration may come before the resource it is for.
func (m *ClientMetadata) checkScope(rules) error {
	scopes, err := oauth.ParseScope(m.Scope)
	if err != nil {
		return oauth.InvalidClientMetadata("scope has a value that RFC 6749 section 3.3 does not allow").With(err)
	}
	m.Scope = strings.Join(scopes, " ")
	return nil
}

// keep returns the members of list that are allowed, once each, in list's order.
func keep(list, allowed []string) []string {
	kept := []string{}
	for _, s := range list {
		if slices.Contains(allowed, s) && !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// cleanList normalises the entries and drops those that are empty then.
func cleanList(list []string) []string {
	var clean []string
	for _, s := range list {
		if s = cleanText(s, maxWord); s != "" {
			clean = append(clean, s)
		}
	}
	return clean
}

// isLink reports an https URL that may be shown to people.
func isLink(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && len(raw) <= maxRedirectURI && isRedirectText(raw) && u.Scheme == "https" && u.Host != "" && u.User == nil
}
