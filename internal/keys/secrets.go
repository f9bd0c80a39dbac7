package keys

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
)

// secretSize is the length of one secret in bytes (D2).
const secretSize = 32

// Secrets are the state secrets, one a kid. The first mints and seals, all
// verify and open. Secrets does not change after it was made, so it is safe for
// concurrent use; however it is printed it reads [redacted].
type Secrets struct {
	entries []secretEntry
	derived map[derivedID][]byte
}

type secretEntry struct {
	kid   byte
	value []byte
}

type derivedID struct {
	kid     byte
	purpose Purpose
}

// GenerateSecrets returns new secrets: one, with kid 1.
func GenerateSecrets() *Secrets {
	value := make([]byte, secretSize)
	_, _ = rand.Read(value) // never fails: crypto/rand crashes the program instead
	s, err := newSecrets([]secretEntry{{kid: 1, value: value}})
	if err != nil {
		panic("keys: " + err.Error()) // unreachable: the length is right
	}
	return s
}

// ParseSecrets reads secrets: lines "kid base64" with kid 1 to 255 and 32 bytes
// each, or a single base64 value alone, which is kid 1 (D2). Standard and URL
// alphabets are accepted, with and without padding; empty lines and lines that
// begin with # are skipped. No error repeats any part of the data.
func ParseSecrets(data []byte) (*Secrets, error) {
	var entries []secretEntry
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		e, err := parseSecretLine(line)
		if err != nil {
			return nil, fmt.Errorf("secret line %d: %w", i+1, err)
		}
		if slices.ContainsFunc(entries, func(o secretEntry) bool { return o.kid == e.kid }) {
			return nil, fmt.Errorf("secret line %d: kid %d is there twice", i+1, e.kid)
		}
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, errors.New("secret is empty; it needs a line \"1 <32 random bytes in base64>\" (openssl rand -base64 32)")
	}
	return newSecrets(entries)
}

func parseSecretLine(line string) (secretEntry, error) {
	kid := byte(1)
	fields := strings.Fields(line)
	switch len(fields) {
	case 1:
	case 2:
		n, err := strconv.ParseUint(fields[0], 10, 8)
		if err != nil || n == 0 {
			return secretEntry{}, errors.New("the kid must be a number from 1 to 255")
		}
		kid, fields = byte(n), fields[1:]
	default:
		return secretEntry{}, errors.New("want \"kid base64\"")
	}
	value, err := decodeSecret(fields[0])
	return secretEntry{kid: kid, value: value}, err
}

// decodeSecret accepts both alphabets of base64, padded or not. Strict refuses
// stray bits, so that a mistyped last character is noticed.
func decodeSecret(s string) ([]byte, error) {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	value, err := base64.RawStdEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, errors.New("the value is not base64")
	}
	if len(value) != secretSize {
		return nil, fmt.Errorf("the value has %d bytes, want %d", len(value), secretSize)
	}
	if bytes.Count(value, value[:1]) == secretSize {
		return nil, errors.New("the value is one byte repeated; use random bytes (openssl rand -base64 32)")
	}
	return value, nil
}

func newSecrets(entries []secretEntry) (*Secrets, error) {
	s := &Secrets{entries: entries, derived: make(map[derivedID][]byte)}
	for _, e := range entries {
		for _, p := range purposes() {
			key, err := hkdf.Key(sha256.New, e.value, nil, string(p), 32)
			if err != nil {
				return nil, fmt.Errorf("derive key: %w", err)
			}
			s.derived[derivedID{e.kid, p}] = key
		}
	}
	return s, nil
}

// MintKID returns the kid under which new strings are made and values sealed.
func (s *Secrets) MintKID() byte { return s.entries[0].kid }

// KIDs returns every kid, the minting one first.
func (s *Secrets) KIDs() []byte {
	var kids []byte
	for _, e := range s.entries {
		kids = append(kids, e.kid)
	}
	return kids
}

// Derive returns the 32-byte key of a kid for a purpose (HKDF-SHA-256). A kid
// that is not known is an error: what names it was not made with these secrets.
// The result is shared and must not be changed.
func (s *Secrets) Derive(kid byte, p Purpose) ([]byte, error) {
	key, ok := s.derived[derivedID{kid, p}]
	if !ok {
		return nil, fmt.Errorf("no secret with kid %d for %q", kid, string(p))
	}
	return key, nil
}

// CheckValue returns what the database keeps to recognise the secret of a kid:
// a derived key that is used for nothing else, so it tells nothing of the secret.
func (s *Secrets) CheckValue(kid byte) ([]byte, error) { return s.Derive(kid, PurposeCheck) }

// Encode returns the secrets in the form that ParseSecrets reads.
func (s *Secrets) Encode() []byte {
	var b bytes.Buffer
	for _, e := range s.entries {
		fmt.Fprintf(&b, "%d %s\n", e.kid, base64.StdEncoding.EncodeToString(e.value))
	}
	return b.Bytes()
}

// String returns [redacted].
func (*Secrets) String() string { return "[redacted]" }

// GoString returns [redacted].
func (*Secrets) GoString() string { return "[redacted]" }

// LogValue returns [redacted].
func (*Secrets) LogValue() slog.Value { return slog.StringValue("[redacted]") }
