package resourceserver

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Limits and defaults of Options.
const (
	defaultClockSkew = 10 * time.Second
	maxClockSkew     = time.Minute
	defaultMaxBody   = 4 << 20

	defaultTokenCache = 10_000
)

// Options configures New. The zero value of every optional field is the safe default.
type Options struct {
	// Issuer is the authorization server's issuer identifier (RFC 8414 §2),
	// exactly as its metadata and its tokens carry it: https, or http on a
	// loopback host. Required unless Issuers is given.
	Issuer string
	// Issuers are the authorization servers whose tokens are accepted, instead of
	// Issuer, when there are several or one needs options of its own. Clients use
	// the first (M4).
	Issuers []Issuer
	// Resource is this server's resource identifier (RFC 8707 §2): the URL that
	// people give their MCP client, and the only audience accepted. Required.
	Resource string
	// Name is resource_name in the metadata document.
	Name string
	// Documentation is resource_documentation, a page for developers.
	Documentation string
	// Scopes are those a client should ask for at first. They are scopes_supported
	// of the document and scope of a 401 challenge, so keep them few; tools that
	// need more ask for it with a 403 (see Operations).
	Scopes []string
	// Operations says which scopes MCP operations need. When it is nil, request
	// bodies are not read and every valid token may do everything. Otherwise the
	// JSON-RPC body of each POST is read first, and what is not in the table needs
	// DefaultScopes, but for the messages that begin, end or describe a
	// conversation (initialize, ping, tools/list and the like). See Operation.
	Operations map[Operation][]string
	// DefaultScopes are needed for operations that Operations does not name. Nil
	// refuses them; an empty list lets every valid token do them.
	DefaultScopes []string
	// Implies says which narrower scopes a broad one covers, e.g. "files" covers
	// "files:read". It is followed further: what a covered scope covers is covered.
	Implies map[string][]string
	// FilterLists leaves out of the answers to tools/list, prompts/list and
	// resources/list what the token may not call by Operations. An answer, or an
	// event of a stream, that is larger than MaxBody or cannot be read is then an
	// error.
	FilterLists bool
	// MaxBody bounds the JSON-RPC body that is read for Operations, in bytes.
	// Default 4 MiB; larger bodies are 413.
	MaxBody int64
	// AllowedOrigins are the values of the Origin header that are served, e.g.
	// "https://inspector.example"; others get 403. Nil allows every origin, since a
	// page has no token that it was not given; but when Resource is on a loopback
	// host, then origins on loopback hosts alone. "*" allows every origin.
	AllowedOrigins []string
	// AllowedHosts are further hosts (name, or name:port) that requests may be
	// for. The host of Resource always is one, and every loopback host when
	// Resource is on one. Requests that arrive on a loopback address for another
	// name get 403: a page could have rebound its name to this machine.
	AllowedHosts []string
	// SessionKey seals MCP-Session-Id, so that a session serves only the issuer and
	// subject that began it. Processes that serve the same sessions
	// share it: 32 random bytes at least. Nil makes one for this process.
	SessionKey []byte
	// NoLegacyMetadata leaves /.well-known/oauth-authorization-server alone.
	// Otherwise it answers with the authorization server's own document, which is
	// where clients of 2025-03-26 look for it: they read no RFC 9728 document.
	NoLegacyMetadata bool
	// Algorithms are the signature algorithms accepted, of ES256, ES384, ES512,
	// EdDSA, RS256, RS384, RS512, PS256, PS384, PS512. Nil means ES256, EdDSA,
	// RS256 and PS256; an empty list is a mistake. The key decides which of them
	// a token may use, never the token alone.
	Algorithms []string
	// ClockSkew is the tolerance applied to exp, nbf and iat, at most a minute.
	// Zero means 10 seconds, a negative value none.
	ClockSkew time.Duration
	// KeyRefresh is how old the issuer's keys may be before they are fetched
	// again. Default 5 minutes. A key that the issuer removes verifies nothing any
	// more this long after the last fetch, once the next has ended (10 seconds at
	// most), be the token remembered or not.
	KeyRefresh time.Duration
	// KeyRetry is the least time between two fetches of the keys: an unknown key
	// id causes at most one fetch in it. Default 30 seconds.
	KeyRetry time.Duration
	// KeyLimit is how long the last good keys are used while the issuer cannot
	// be reached; after it requests get 503. Default 24 hours.
	KeyLimit time.Duration
	// MetadataAtRoot also serves the metadata document at the root well-known
	// path when Resource has a path. Clients that follow RFC 9728 §3.3 refuse it
	// there; a few old ones look nowhere else.
	MetadataAtRoot bool
	// AllowTokenPassthrough leaves the Authorization header on the request that
	// the handler gets. A handler that forwards its request then hands the
	// caller's token to another server, which the MCP specification forbids.
	AllowTokenPassthrough bool
	// TokenCache is how many verified tokens are remembered, by their hash, never
	// beyond exp and only while their key is published. Default 10,000, about 6 MB;
	// a negative value verifies every request anew.
	TokenCache int
	// HTTPClient fetches the issuer's metadata and keys. Redirects are never
	// followed, whatever it says. Default: a client with a 10 s timeout.
	HTTPClient *http.Client
	// Log gets refused tokens (debug), outages (warning, at most one a minute) and
	// no token ever. Default: nothing is logged.
	Log *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Server protects one resource. Its methods may be called concurrently.
type Server struct {
	opts        Options
	audience    string // canonical form of Options.Resource (A23)
	metadataURL string
	document    []byte
	paths       map[string]bool // where the document is served
	verifier    *verifier
	log         *slog.Logger
	outage      *outageLog          // of requests refused with 503
	table       *table              // nil when Options.Operations is
	implied     map[string][]string // Options.Implies, followed to the end
	door        *door
	sessions    *sessions
	legacy      *legacyDocument // nil with Options.NoLegacyMetadata
	legacyPaths map[string]bool // where it is served
}

// New checks o and returns a Server. It joins all mistakes it finds, and it
// does not contact the issuer: the first token does.
func New(o Options) (*Server, error) {
	audience, err := oauth.CanonicalResource(o.Resource)
	if err != nil {
		err = fmt.Errorf("Options.Resource %q: %w", o.Resource, err)
	}
	_, algErr := parseAlgorithms(o.Algorithms)
	issuers, issuerErr := o.trusted()
	if err := errors.Join(err, issuerErr, algErr, checkApart(audience, issuers), checkText(o), checkLimits(o)); err != nil {
		return nil, fmt.Errorf("resourceserver: %w", err)
	}
	o.Issuers, o.Issuer = issuers, issuers[0].Identifier
	setDefaults(&o)
	s := &Server{opts: o, audience: audience, log: o.Log, outage: &outageLog{log: o.Log, now: o.Now}}
	if s.metadataURL, s.paths, err = wellKnown(o.Resource, o.MetadataAtRoot); err != nil {
		return nil, fmt.Errorf("resourceserver: %w", err)
	}
	if s.document, err = document(o); err != nil {
		return nil, fmt.Errorf("resourceserver: %w", err)
	}
	if err := s.prepare(); err != nil {
		return nil, fmt.Errorf("resourceserver: %w", err)
	}
	if s.verifier, err = newVerifier(o, audience); err != nil {
		return nil, fmt.Errorf("resourceserver: %w", err)
	}
	return s, nil
}

// checkApart refuses a resource that is named as an issuer is: tokens meant for the
// authorization server itself would pass for ours (AU-09, M7).
func checkApart(audience string, issuers []Issuer) error {
	for _, i := range issuers {
		if c, err := oauth.CanonicalResource(i.Identifier); err == nil && c == audience {
			return fmt.Errorf("Options.Resource and the issuer %q are the same URL: the resource needs one of its own", i.Identifier)
		}
	}
	return nil
}

func setDefaults(o *Options) {
	setDefault(&o.ClockSkew, defaultClockSkew)
	o.ClockSkew = max(o.ClockSkew, 0)
	setDefault(&o.KeyRefresh, 5*time.Minute)
	setDefault(&o.KeyRetry, 30*time.Second)
	setDefault(&o.KeyLimit, 24*time.Hour)
	setDefault(&o.MaxBody, defaultMaxBody)
	setDefault(&o.TokenCache, defaultTokenCache)
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	client := http.Client{Timeout: 10 * time.Second}
	if o.HTTPClient != nil {
		client = *o.HTTPClient
	}
	// A redirect would let any page of the issuer's host choose our keys (JW-22).
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.HTTPClient = &client
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// checkText refuses values that could not stand in a header or in the document (JW-30).
func checkText(o Options) error {
	var errs []error
	for _, scopes := range append([][]string{o.Scopes, o.DefaultScopes}, mapValues(o.Operations)...) {
		for _, s := range scopes {
			if !oauth.IsScopeToken(s) {
				errs = append(errs, fmt.Errorf("scope %q is not a scope-token (RFC 6749 §3.3)", s))
			}
		}
	}
	if slices.Contains(o.Scopes, "offline_access") {
		// M4: it opens nothing here; clients ask for it when the authorization server has it
		errs = append(errs, errors.New("Options.Scopes has offline_access, which is the authorization server's"))
	}
	if u, err := url.Parse(o.Resource); err == nil && u.RawQuery != "" {
		errs = append(errs, fmt.Errorf("Options.Resource %q must not have a query", o.Resource))
	}
	return errors.Join(append(errs, checkOperationTable(o))...)
}

func checkLimits(o Options) error {
	var errs []error
	if o.ClockSkew > maxClockSkew {
		errs = append(errs, fmt.Errorf("Options.ClockSkew %s is more than a minute", o.ClockSkew))
	}
	if o.KeyRefresh < 0 || o.KeyRetry < 0 || o.KeyLimit < 0 || o.MaxBody < 0 {
		errs = append(errs, errors.New("KeyRefresh, KeyRetry, KeyLimit and MaxBody must not be negative"))
	}
	return errors.Join(errs...)
}

func mapValues(m map[Operation][]string) [][]string {
	var all [][]string
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

// isSecure reports https, or http to a host that never leaves this machine.
func isSecure(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}
