package resourceserver

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"strings"
)

const (
	headerSession = "Mcp-Session-Id"
	maxSessionID  = 1 << 10
	minSessionKey = 32
	sessionTag    = 16 // bytes of the MAC that are kept
)

// sessions binds the session ids of MCP before 2026-07-28 to who began the
// session (JW-25). The client gets the server's id with a tag over it and the
// token's issuer and subject; the tag is checked and taken off again, so nothing
// is stored and processes with the same key agree (ADR 0012).
type sessions struct{ key []byte }

func newSessions(key []byte) (*sessions, error) {
	if key == nil {
		key = make([]byte, minSessionKey)
		_, _ = rand.Read(key) // never fails
	}
	if len(key) < minSessionKey || len(bytes.Trim(key, "\x00")) == 0 {
		return nil, errors.New("Options.SessionKey is not 32 random bytes or more")
	}
	return &sessions{key: key}, nil
}

// seal returns the id that the client gets.
func (s *sessions) seal(t *Token, id string) string { return id + "." + s.tag(t, id) }

// open returns the server's own id; false when t did not begin the session.
func (s *sessions) open(t *Token, sealed string) (string, bool) {
	i := strings.LastIndexByte(sealed, '.')
	if i < 0 || len(sealed) > maxSessionID {
		return "", false
	}
	id := sealed[:i]
	return id, subtle.ConstantTimeCompare([]byte(sealed[i+1:]), []byte(s.tag(t, id))) == 1
}

func (s *sessions) tag(t *Token, id string) string {
	mac := hmac.New(sha256.New, s.key)
	// Not the client: it may register anew in mid-session, as the go-sdk does to
	// step up.
	for _, part := range []string{"ostiary mcp session v1", t.Issuer, t.Subject, id} {
		_ = binary.Write(mac, binary.BigEndian, uint64(len(part)))
		mac.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:sessionTag])
}

// unseal replaces the session id in h, the header of the request that the
// handler gets. Since 2026-07-28 there are no sessions: an id that a client
// still sends there is left out, so that no server takes it up.
func (s *sessions) unseal(h http.Header, t *Token) error {
	values := h[headerSession]
	if len(values) == 0 {
		return nil
	}
	if len(values) > 1 {
		return badBody(errors.New("more than one Mcp-Session-Id header"), nil)
	}
	if v := h.Get(headerVersion); isVersion(v) && v >= versionMirrors {
		h.Del(headerSession)
		return nil
	}
	id, ok := s.open(t, values[0])
	if !ok {
		const sessionNotFound = -32001 // as the SDKs answer it
		return &refusal{status: http.StatusNotFound, code: "session_not_found", rpcCode: sessionNotFound,
			description: "no session of yours has this id; begin a new one"}
	}
	h.Set(headerSession, id)
	return nil
}
