package gateway

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// Identity is how the upstream learns who calls.
type Identity int

// The ways.
const (
	// IdentityJWT sends a signed JWT in X-Ostiary-Identity.
	IdentityJWT Identity = iota
	// IdentityHeaders sends plain headers, which anybody could write who reaches the
	// upstream past the gateway: on loopback and unix sockets only.
	IdentityHeaders
	// IdentityNone sends nothing.
	IdentityNone
)

var identityNames = [...]string{"jwt", "headers", "none"}

// ParseIdentity returns the way that String names: jwt, headers or none.
func ParseIdentity(name string) (Identity, error) {
	i := slices.Index(identityNames[:], name)
	if i < 0 {
		return 0, fmt.Errorf("identity %q is none of %s", name, strings.Join(identityNames[:], ", "))
	}
	return Identity(i), nil
}

// String returns the name as a command line has it.
func (i Identity) String() string {
	if i < 0 || int(i) >= len(identityNames) {
		return fmt.Sprintf("Identity(%d)", int(i))
	}
	return identityNames[i]
}

// Headers that tell the upstream who calls, in canonical form.
const (
	headerIdentity = "X-Ostiary-Identity"
	headerIssuer   = "X-Ostiary-Issuer"
	headerSubject  = "X-Ostiary-Subject"
	headerClientID = "X-Ostiary-Client-Id"
	headerScope    = "X-Ostiary-Scope"
)

// Lifetimes of identities.
const (
	identityLifetime = 60 * time.Second
	// identityMinimum is left to a token that is about to expire, or did within the
	// tolerance for clocks: the upstream should still take what was let in here.
	identityMinimum = 10 * time.Second
	maxIdentities   = 4096 // tokens whose JWT is remembered
)

// errUnwritable refuses a token whose names would read differently in a header.
var errUnwritable = errors.New("the token's subject, client or scope cannot stand in a header; use --identity jwt")

// identifier writes who calls.
type identifier struct {
	way      Identity
	key      *Key
	issuer   string // the gateway's resource
	audience string // the upstream
	now      func() time.Time

	mu     sync.Mutex
	issued map[*resourceserver.Token]issued
}

// issued is a JWT that is still good for further requests.
type issued struct {
	values []string // of the header; nobody writes to it
	until  time.Time
}

func newIdentifier(o Options, u *upstream, key *Key) (*identifier, error) {
	if o.Identity < 0 || int(o.Identity) >= len(identityNames) {
		return nil, fmt.Errorf("identity %d is not known", int(o.Identity))
	}
	if o.Identity == IdentityHeaders && !u.isLocal() {
		return nil, fmt.Errorf("identity headers go to a loopback address or a unix socket only: "+
			"whoever reaches %s past the gateway could write them too; use jwt", u.name)
	}
	if u.isOpen() {
		o.Log.Warn("requests to the upstream cross the network unencrypted; use https, a loopback address or a unix socket",
			slog.String("upstream", u.name))
	}
	return &identifier{way: o.Identity, key: key, issuer: o.ResourceServer.Resource, audience: u.name, now: o.Now,
		issued: map[*resourceserver.Token]issued{}}, nil
}

// headers returns what is added to a request of t.
func (i *identifier) headers(t *resourceserver.Token) (http.Header, error) {
	switch i.way {
	case IdentityNone:
		return nil, nil
	case IdentityHeaders:
		return plainHeaders(t)
	}
	values, err := i.jwt(t)
	return http.Header{headerIdentity: values}, err
}

// plainHeaders refuses what another reader could take for somebody else: spaces at
// the ends are cut, and octets beyond ASCII have several meanings.
func plainHeaders(t *resourceserver.Token) (http.Header, error) {
	h := http.Header{headerIssuer: {t.Issuer}, headerSubject: {t.Subject}, headerClientID: {t.ClientID},
		headerScope: {strings.Join(t.Scopes, " ")}}
	for _, values := range h {
		for j := range len(values[0]) {
			if c := values[0][j]; c < ' ' || c > '~' {
				return nil, errUnwritable
			}
		}
		if strings.TrimSpace(values[0]) != values[0] {
			return nil, errUnwritable
		}
	}
	return h, nil
}

// jwt returns the identity of t. Tokens are remembered by address: resourceserver
// gives out the same one while it remembers the token it verified.
func (i *identifier) jwt(t *resourceserver.Token) ([]string, error) {
	now := i.now()
	i.mu.Lock()
	known, ok := i.issued[t]
	i.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.values, nil
	}
	expires := expiry(t, now)
	claims, err := json.Marshal(i.claims(t, now, expires))
	if err != nil {
		return nil, fmt.Errorf("encode identity: %w", err)
	}
	signed, err := i.key.sign(claims)
	if err != nil {
		return nil, err
	}
	// One JWT serves all requests of a token for half its life: signing costs more
	// than everything else here.
	known = issued{values: []string{signed}, until: now.Add(expires.Sub(now) / 2)}
	i.remember(t, known, now)
	return known.values, nil
}

func (i *identifier) remember(t *resourceserver.Token, v issued, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.issued) >= maxIdentities {
		i.forget(now)
	}
	i.issued[t] = v
}

// forget makes room: what is over, or else a few of them, which a map yields in
// random order.
func (i *identifier) forget(now time.Time) {
	for t, v := range i.issued {
		if !now.Before(v.until) {
			delete(i.issued, t)
		}
	}
	for t := range i.issued {
		if len(i.issued) < maxIdentities*3/4 {
			return
		}
		delete(i.issued, t)
	}
}

// identity is what the upstream verifies: who calls, by which client, with which
// scopes. sub is unique within subject_issuer.
type identity struct {
	Issuer        string `json:"iss"`
	Audience      string `json:"aud"`
	Subject       string `json:"sub"`
	SubjectIssuer string `json:"subject_issuer"`
	ClientID      string `json:"client_id,omitempty"`
	Scope         string `json:"scope"`
	IssuedAt      int64  `json:"iat"`
	ExpiresAt     int64  `json:"exp"`
	ID            string `json:"jti"`
}

// expiry returns when an identity made now ends: with its token, if that is sooner.
func expiry(t *resourceserver.Token, now time.Time) time.Time {
	expires := now.Add(identityLifetime)
	if !t.ExpiresAt.IsZero() && t.ExpiresAt.Before(expires) {
		expires = t.ExpiresAt
	}
	if least := now.Add(identityMinimum); expires.Before(least) {
		return least
	}
	return expires
}

func (i *identifier) claims(t *resourceserver.Token, now, expires time.Time) identity {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return identity{Issuer: i.issuer, Audience: i.audience, Subject: t.Subject, SubjectIssuer: t.Issuer, ClientID: t.ClientID,
		Scope: strings.Join(t.Scopes, " "), IssuedAt: now.Unix(), ExpiresAt: expires.Unix(),
		ID: base64.RawURLEncoding.EncodeToString(id[:])}
}
