package oauth

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a string that must not reach a log, an error or a page: codes,
// tokens, client secrets, passwords, verifiers, session ids. However it is
// printed it reads [redacted]; Reveal gives the value.
type Secret string

// Reveal returns the value. Its callers are the few places that send or hash it.
func (s Secret) Reveal() string { return string(s) }

// Equal compares in constant time.
func (s Secret) Equal(other Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s), []byte(other)) == 1
}

// String returns [redacted].
func (Secret) String() string { return redacted }

// GoString returns [redacted].
func (Secret) GoString() string { return redacted }

// Format writes [redacted] for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue returns [redacted].
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON writes "[redacted]"; a response that must carry the value reveals it.
func (Secret) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }

// MarshalText writes [redacted].
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
