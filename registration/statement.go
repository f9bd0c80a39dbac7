package registration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/jose"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// maxStatement bounds a software statement, in bytes.
const maxStatement = 32 << 10

// statementSkew is how far the issuer's clock may be off.
const statementSkew = time.Minute

// statementClaims are the claims of a software statement that tell of the JWT,
// not of the client (RFC 7519 §4.1).
var statementClaims = [...]string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti"}

// StatementIssuer is somebody whose word about client software is taken (RFC 7591 §2.3).
type StatementIssuer struct {
	// Issuer is the iss of its statements, compared as it is.
	Issuer string
	// JWKS is where its keys are: an https URL, or the path of a file.
	JWKS string
}

// Statements checks software statements. The zero Statements trusts nobody, and
// statements are ignored (RFC 7591 §2.3). It is safe for concurrent use.
type Statements struct {
	// Issuers are trusted.
	Issuers []StatementIssuer
	// Audience is our issuer: a statement that has an aud must name it.
	Audience string
	// Keys gets the keys of issuers that have them at a URL.
	Keys *ClientKeys
}

// accepts reports whether statements count at all.
func (s *Statements) accepts() bool { return s != nil && len(s.Issuers) > 0 }

// verify returns what a statement says about the client, or
// invalid_software_statement (DR-09). Keys that cannot be had are a 503: the
// statement may be good.
func (s *Statements) verify(ctx context.Context, raw string, now time.Time) (members, error) {
	st, err := readStatement(raw)
	if err != nil {
		return nil, err
	}
	issuer, err := s.issuer(st.claims)
	if err != nil {
		return nil, err
	}
	if err := s.checkClaims(st.claims, now); err != nil {
		return nil, err
	}
	if err := s.checkSignature(ctx, issuer, st); err != nil {
		return nil, err
	}
	for _, name := range statementClaims {
		delete(st.claims, name)
	}
	return st.claims, nil
}

// readStatement parses a software statement.
func readStatement(raw string) (*signedJWT, error) {
	jwt, err := readSignedJWT(raw, maxStatement)
	if err != nil {
		return nil, invalidStatement("%s", err)
	}
	// RFC 8725 §3.11: an ID token or an assertion of the same issuer is no statement
	if jwt.typ != "" && jwt.typ != "jwt" {
		return nil, invalidStatement("has a typ that is not JWT")
	}
	return jwt, nil
}

func (s *Statements) issuer(claims members) (StatementIssuer, error) {
	var iss string
	if err := claims.string("iss", &iss, maxIssuer); err != nil || iss == "" {
		return StatementIssuer{}, invalidStatement("has no iss") // RFC 7591 §2.3: REQUIRED
	}
	i := slices.IndexFunc(s.Issuers, func(i StatementIssuer) bool { return i.Issuer == iss })
	if i < 0 {
		return StatementIssuer{}, invalidStatement("is of an issuer that this server does not trust")
	}
	return s.Issuers[i], nil
}

// checkClaims applies exp, nbf, iat and aud where they stand.
func (s *Statements) checkClaims(c members, now time.Time) error {
	if exp, ok := c.seconds("exp"); c.has("exp") && (!ok || !now.Before(exp.Add(statementSkew))) {
		return invalidStatement("has expired, or has an exp that is not in seconds")
	}
	for _, name := range []string{"iat", "nbf"} {
		if at, ok := c.seconds(name); c.has(name) && (!ok || at.After(now.Add(statementSkew))) {
			return invalidStatement("has an %s in the future, or not in seconds", name)
		}
	}
	if !c.has("aud") {
		return nil
	}
	var list []string
	if json.Unmarshal(c["aud"], &list) != nil {
		list = []string{c.audience()}
	}
	if !slices.Contains(list, s.Audience) {
		return invalidStatement("has an aud that is not this server's issuer")
	}
	return nil
}

func (s *Statements) checkSignature(ctx context.Context, issuer StatementIssuer, st *signedJWT) error {
	key, err := s.key(ctx, issuer, st)
	if errors.Is(err, errNoKey) {
		return invalidStatement("is signed with a key that its issuer does not have").With(err)
	}
	if err != nil {
		return oauth.Unavailable(time.Minute, fmt.Errorf("keys of software statement issuer %s: %w", issuer.Issuer, err))
	}
	if err := key.Verify(st.alg, st.signed, st.signature); err != nil {
		return invalidStatement("has a signature that is not its issuer's").With(err)
	}
	return nil
}

// key finds the issuer's key as that of a client which the operator added is found.
func (s *Statements) key(ctx context.Context, issuer StatementIssuer, st *signedJWT) (*jose.Key, error) {
	if strings.HasPrefix(issuer.JWKS, "https://") {
		if s.Keys == nil {
			return nil, errors.New("nothing is configured that could fetch them")
		}
		return s.Keys.find(ctx, &Client{ID: issuer.Issuer, Kind: KindOperator, Metadata: ClientMetadata{JWKSURI: issuer.JWKS}}, st.keyID, st.alg)
	}
	b, err := os.ReadFile(issuer.JWKS) // read each time, so that a changed file counts at once
	if err != nil {
		return nil, err
	}
	keys, err := parseJWKS(b)
	if err != nil {
		return nil, err
	}
	return oneKey(keys, st.keyID, st.alg)
}

// readMetadata reads the document of a registration, with what a trusted
// software statement in it says in place of what the client says (RFC 7591
// §3.1.1), and applies the rules and the operator's policy.
func (h *Handler) readMetadata(ctx context.Context, doc members) (ClientMetadata, error) {
	raw, err := h.applyStatement(ctx, doc)
	if err != nil {
		return ClientMetadata{}, err
	}
	m, err := doc.metadata()
	if err != nil {
		return ClientMetadata{}, err
	}
	if err := m.normalize(selfRegistered()); err != nil {
		return ClientMetadata{}, err
	}
	if err := h.o.Policy.checkRedirects(m.RedirectURIs); err != nil {
		return ClientMetadata{}, err
	}
	if err := checkKeysURL(h.o.CheckURL, m.JWKSURI); err != nil {
		return ClientMetadata{}, err
	}
	m.SoftwareStatement = raw
	m.Scope, err = h.knownScope(ctx, m.Scope)
	return m, err
}

// applyStatement writes the claims of a trusted statement over the document and
// returns the statement, "" for none that counts.
func (h *Handler) applyStatement(ctx context.Context, doc members) (raw string, err error) {
	if !h.o.Statements.accepts() {
		return "", nil
	}
	if err := doc.string("software_statement", &raw, maxStatement); err != nil {
		return "", invalidStatement("must be a string of at most %d bytes", maxStatement)
	}
	if raw == "" {
		if h.o.Policy.Mode == ModeStatement {
			return "", invalidStatement("is required here; ask the operator whose statements are accepted")
		}
		return "", nil
	}
	claims, err := h.o.Statements.verify(ctx, raw, h.o.Now())
	if err != nil {
		return "", err
	}
	for name, value := range claims {
		doc[name] = value
	}
	return raw, nil
}

// invalidStatement reports a software statement that does not count (RFC 7591 §3.2.2).
func invalidStatement(format string, args ...any) *oauth.Error {
	return &oauth.Error{Code: "invalid_software_statement", Description: "software_statement " + fmt.Sprintf(format, args...)}
}
