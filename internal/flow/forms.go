package flow

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"
)

// ErrFormToken reports a txn value that was not made for this session, purpose
// and subject matter, or that is too old. The page answers 403 (CS-01).
var ErrFormToken = errors.New("form token does not belong to this session and page")

// formTokenMax is how long a form may stay open (D33: a request's whole life).
const formTokenMax = RequestMax

// HMACForms implements Forms with one key.
type HMACForms struct {
	// Key is derived for this purpose alone (D2: "form").
	Key []byte
	// Now is the clock.
	Now func() time.Time
}

// Token implements Forms.
func (f *HMACForms) Token(s *Session, purpose, ref string) string {
	var shown [8]byte
	binary.BigEndian.PutUint64(shown[:], uint64(f.Now().UnixMilli()))
	return base64.RawURLEncoding.EncodeToString(append(shown[:], f.mac(shown[:], s, purpose, ref)...))
}

// Check implements Forms.
func (f *HMACForms) Check(_ context.Context, s *Session, purpose, ref, token string) (time.Time, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != 8+sha256.Size || s == nil {
		return time.Time{}, ErrFormToken
	}
	if !hmac.Equal(raw[8:], f.mac(raw[:8], s, purpose, ref)) {
		return time.Time{}, ErrFormToken
	}
	shown := time.UnixMilli(int64(binary.BigEndian.Uint64(raw[:8])))
	if f.Now().Sub(shown) > formTokenMax {
		return time.Time{}, ErrFormToken
	}
	return shown, nil
}

func (f *HMACForms) mac(shown []byte, s *Session, purpose, ref string) []byte {
	h := hmac.New(sha256.New, f.Key)
	for _, part := range []string{string(shown), s.ID, s.Subject, purpose, ref} {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

var _ Forms = (*HMACForms)(nil)
