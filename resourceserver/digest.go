package resourceserver

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"sync"
)

// digest names a token in a cache: what is cached tells nobody the token.
type digest [sha256.Size]byte

// digester makes digests. It may be used concurrently.
//
// SHA-256 of a whole token would be half of the time of a request whose token is
// remembered. So the token is first shortened to 16 bytes by GHASH, the keyed hash
// of AES-GCM (NIST SP 800-38D §6.4), which processors compute several times as
// fast, and SHA-256 is taken of those (ADR 0013). GHASH by itself is no
// cryptographic hash, but two different tokens have the same value for at most
// 1,025 of its 2^128 keys (one for each block), and this key is random, never
// leaves the digester, and stands behind SHA-256, so no answer of ours tells
// anything about it.
type digester struct {
	mac     cipher.AEAD // nil: SHA-256 alone, as the zero digester does
	scratch sync.Pool   // of *digestScratch
}

// digestScratch is what the MAC is computed in; on the stack it would not stay.
type digestScratch struct {
	token []byte
	tag   [16]byte
}

// digestNonce may be the same each time: the MAC is shown to nobody.
var digestNonce [12]byte

func newDigester() *digester {
	d := &digester{}
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	if block, err := aes.NewCipher(key); err == nil {
		// An error is Go's FIPS 140-only mode, which knows no GCM with such a nonce.
		if mac, err := cipher.NewGCM(block); err == nil {
			d.mac = mac
		}
	}
	return d
}

// of returns the digest of raw.
func (d *digester) of(raw string) digest {
	s, _ := d.scratch.Get().(*digestScratch)
	if s == nil {
		s = &digestScratch{}
	}
	defer d.scratch.Put(s)
	s.token = append(s.token[:0], raw...)
	defer clear(s.token) // a pool is no place for tokens either
	if d.mac == nil {
		return sha256.Sum256(s.token)
	}
	d.mac.Seal(s.tag[:0], digestNonce[:], nil, s.token)
	return sha256.Sum256(s.tag[:])
}
