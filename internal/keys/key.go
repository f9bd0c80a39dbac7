package keys

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// Key is one signing key as stored.
type Key struct {
	// KID is the RFC 7638 thumbprint of the public key.
	KID string
	// Algorithm is the JWS alg it signs with.
	Algorithm string
	// PublicJWK is the public key as published (RFC 7517).
	PublicJWK json.RawMessage
	// PrivateSealed is the PKCS #8 private key, sealed for its row.
	PrivateSealed []byte
	CreatedAt     time.Time
	// ActiveAt is when it begins to sign.
	ActiveAt time.Time
	// RetireAt is until when it is published; zero while it has no successor.
	RetireAt time.Time
}

// State is where a key is in its life (D28).
type State string

// States of a key, in the order it passes through them.
const (
	StateNext     State = "next"     // published, does not sign yet
	StateActive   State = "active"   // signs
	StateRetiring State = "retiring" // published until its last token has expired
	StateRetired  State = "retired"  // neither signs nor is published
)

// Info is a key as shown to operators.
type Info struct {
	KID       string    `json:"kid"`
	Algorithm string    `json:"alg"`
	State     State     `json:"state"`
	CreatedAt time.Time `json:"created_at"`
	ActiveAt  time.Time `json:"active_at"`
	RetireAt  time.Time `json:"retire_at,omitzero"`
}

// Store keeps signing keys. Every method is one statement.
type Store interface {
	store.Transactor
	audit.Store
	// LockServer is ServerStore's: one rotation at a time.
	LockServer(ctx context.Context, lock string) error
	// CreateKey inserts k, or returns store.ErrExists.
	CreateKey(ctx context.Context, k Key) error
	// ListKeys returns all keys, in the order in which they begin to sign.
	ListKeys(ctx context.Context) ([]Key, error)
	// SetKeyTimes replaces ActiveAt and RetireAt, or returns store.ErrNotFound.
	SetKeyTimes(ctx context.Context, kid string, activeAt, retireAt time.Time) error
	// DeleteRetiredKeys removes the keys whose RetireAt is not after now, and
	// returns how many; their private halves are then gone.
	DeleteRetiredKeys(ctx context.Context, now time.Time) (int, error)
}

// generate makes a key of the algorithm that begins to sign at activeAt.
func (s *Set) generate(alg Algorithm, now, activeAt time.Time) (Key, error) {
	private, err := alg.generate()
	if err != nil {
		return Key{}, fmt.Errorf("generate signing key: %w", err)
	}
	public, err := newPublicJWK(alg, private.Public())
	if err != nil {
		return Key{}, err
	}
	raw, err := json.Marshal(public)
	if err != nil {
		return Key{}, fmt.Errorf("encode public key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return Key{}, fmt.Errorf("encode signing key: %w", err)
	}
	sealed, err := s.o.Secrets.Seal(s.place(public.KID), der)
	if err != nil {
		return Key{}, fmt.Errorf("seal signing key: %w", err)
	}
	return Key{KID: public.KID, Algorithm: string(alg), PublicJWK: raw, PrivateSealed: sealed,
		CreatedAt: now, ActiveAt: activeAt}, nil
}

// open unseals the private half and checks that it is of the row's algorithm.
func (s *Set) open(k Key) (crypto.Signer, error) {
	alg := Algorithm(k.Algorithm)
	if !alg.Known() {
		return nil, fmt.Errorf("signing key %s: algorithm %q is not known to this version", k.KID, k.Algorithm)
	}
	der, err := s.o.Secrets.Open(s.place(k.KID), k.PrivateSealed)
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", k.KID, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", k.KID, err)
	}
	private, ok := parsed.(crypto.Signer)
	if !ok || !alg.fits(private.Public()) {
		return nil, fmt.Errorf("signing key %s is not a key for %s", k.KID, alg)
	}
	return private, nil
}

func (s *Set) place(kid string) Place {
	return Place{Issuer: s.o.Issuer, Table: "signing_keys", Row: kid}
}
