// Package consent owns what a subject allowed a client: the remembered decision,
// the question whether it covers a new request, and the page that asks. It
// issues nothing: an answer is recorded on the authorization request, and
// authserver/continue.go goes on from there.
package consent

import (
	"context"
	"time"

	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/registration"
)

// Consent is one remembered decision: what a subject allowed a client at one
// redirect URI and one resource (CS-11: any change asks again).
type Consent struct {
	Subject  string
	ClientID string
	// RedirectURI is where access went, as registration.RedirectKey: the port of
	// a loopback URI is another at each run of an app.
	RedirectURI string
	Resource    string
	// Scopes are every scope allowed so far.
	Scopes []string
	// StayConnected says whether refresh tokens were allowed (D9).
	StayConnected bool
	// DocumentHash is the client's at the time (CI-17).
	DocumentHash string
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Request is what is asked for, compared with a Consent by Covers and Beyond.
type Request struct {
	Subject       string
	ClientID      string
	RedirectURI   string
	Resource      string
	Scopes        []string
	StayConnected bool
	DocumentHash  string
}

// Covers reports whether the remembered decision allows everything that r asks.
func (c *Consent) Covers(res resource.Resource, r Request) bool {
	return c.decides(r) && c.Beyond(res, r) == nil
}

// decides reports whether the remembered decision is about r at all: the same
// person, client, redirect URI and resource, and a client that did not change.
func (c *Consent) decides(r Request) bool {
	return c.Subject == r.Subject && c.ClientID == r.ClientID && c.Resource == r.Resource && c.DocumentHash == r.DocumentHash &&
		registration.RedirectKey(c.RedirectURI) == registration.RedirectKey(r.RedirectURI)
}

// MayRemember reports whether an approval of the client at redirectURI may be
// used again without asking (D11): a client that the operator added or verified,
// and one known by its metadata document when the response goes to a website on
// the site of that document. Any program of a computer can pass for the others
// (CI-18).
func MayRemember(c *registration.Client, redirectURI string) bool {
	return c.Trusted() || c.Kind == registration.KindCIMD && isHTTPS(redirectURI) && registration.SameSite(c.ID, redirectURI)
}

// Store keeps consents. Every method is one statement, and takes a redirect URI
// as it was used or as its registration.RedirectKey, which is what it keeps.
type Store interface {
	// PutConsent inserts or replaces the row of (Subject, ClientID, RedirectURI,
	// Resource), keeping CreatedAt and uniting Scopes is the caller's business.
	PutConsent(ctx context.Context, c Consent) error
	// GetConsent returns the row, or store.ErrNotFound.
	GetConsent(ctx context.Context, subject, clientID, redirectURI, resource string) (Consent, error)
	// HoldConsent is GetConsent for a transaction that relies on the row: nobody
	// deletes it before the transaction ends.
	HoldConsent(ctx context.Context, subject, clientID, redirectURI, resource string) (Consent, error)
	// LastConsent returns what the subject allowed the client last, wherever access
	// went and whatever the resource, or store.ErrNotFound.
	LastConsent(ctx context.Context, subject, clientID string) (Consent, error)
	// HasConsent reports whether the subject ever allowed the client at this
	// redirect URI, whatever the resource (D14).
	HasConsent(ctx context.Context, subject, clientID, redirectURI string) (bool, error)
	// CountSubjects returns how many people other than subject allow the client.
	CountSubjects(ctx context.Context, clientID, exceptSubject string) (int, error)
	// DeleteConsents removes the rows that match; empty arguments match all, and
	// at least one must be given.
	DeleteConsents(ctx context.Context, subject, clientID, resource string) error
	RefusalStore
}
