package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
)

// Place names where a sealed value is stored. It is authenticated with the
// value, so that a value copied to another row, table or server does not open.
type Place struct {
	// Issuer is the issuer whose database it is.
	Issuer string
	// Table is the table's name.
	Table string
	// Row is the row's key.
	Row string
}

// aad is unambiguous: every part is prefixed with its length.
func (p Place) aad() []byte {
	b := []byte("ostiary sealed v1")
	for _, part := range []string{p.Issuer, p.Table, p.Row} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	return b
}

// errSealed says nothing of why a sealed value does not open.
var errSealed = errors.New("sealed value cannot be opened: it was changed, moved, or sealed with another secret")

// Seal encrypts value for its place with AES-256-GCM under the minting secret.
// The result is kid, nonce and ciphertext.
func (s *Secrets) Seal(p Place, value []byte) ([]byte, error) {
	kid := s.MintKID()
	aead, err := s.aead(kid)
	if err != nil {
		return nil, err
	}
	return aead.Seal([]byte{kid}, nil, value, p.aad()), nil
}

// Open decrypts a value that Seal made for the same place.
func (s *Secrets) Open(p Place, sealed []byte) ([]byte, error) {
	if len(sealed) == 0 {
		return nil, errSealed
	}
	aead, err := s.aead(sealed[0])
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", errSealed, err)
	}
	value, err := aead.Open(nil, nil, sealed[1:], p.aad())
	if err != nil {
		return nil, errSealed
	}
	return value, nil
}

func (s *Secrets) aead(kid byte) (cipher.AEAD, error) {
	key, err := s.Derive(kid, PurposeSeal)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}
