package authserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Kinds of token string. The readable prefix lets secret scanners find a leak.
const (
	kindCode    = "ost_ac_"
	kindRefresh = "ost_rt_"
)

const (
	tokenVersion   = 1
	tokenBytes     = 1 + 1 + 16 + 4 + 32
	maxGeneration  = 1<<31 - 1
	grantIDBytes   = 16
	tagOffset      = tokenBytes - 32
	tokenTextBytes = tokenBytes * 4 / 3 // 54 bytes encode without padding and stray bits
)

// errTokenString reports a string that cannot be one of ours.
var errTokenString = errors.New("not a token string of this server")

// tokenStrings mints and checks the strings of codes and refresh tokens (D29).
// Nothing is stored per token: the grant's row holds generation and salt, so a
// read of the database forges nothing, and neither does the secret alone.
type tokenStrings struct {
	secrets *keys.Secrets
	issuer  string
}

// tokenRef is a parsed token string whose tag is not yet checked.
type tokenRef struct {
	kind       string
	kid        byte
	grantID    string
	generation int
	tag        []byte
}

// mint returns the token string of a grant's generation: generation 0 is its
// authorization code, every other one a refresh token.
func (t *tokenStrings) mint(grantID string, generation int, salt []byte) (oauth.Secret, error) {
	id, err := hex.DecodeString(grantID)
	if err != nil || len(id) != grantIDBytes || len(salt) == 0 {
		return "", fmt.Errorf("mint token string: grant %q has no usable id or salt", grantID)
	}
	kind := kindRefresh
	if generation == 0 {
		kind = kindCode
	}
	raw := make([]byte, 0, tokenBytes)
	raw = append(raw, tokenVersion, t.secrets.MintKID())
	raw = append(raw, id...)
	raw = binary.BigEndian.AppendUint32(raw, uint32(generation))
	tag, err := t.tag(kind, raw, salt)
	if err != nil {
		return "", fmt.Errorf("mint token string: %w", err)
	}
	return oauth.Secret(kind + base64.RawURLEncoding.EncodeToString(append(raw, tag...))), nil
}

// parse reads a token string strictly: exact kind, length, version and base64
// without stray bits or newlines. It says nothing about the tag.
func (t *tokenStrings) parse(kind string, s oauth.Secret) (tokenRef, error) {
	text, ok := strings.CutPrefix(s.Reveal(), kind)
	if !ok || len(text) != tokenTextBytes {
		return tokenRef{}, errTokenString
	}
	var raw [tokenBytes]byte
	n, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(text))
	if err != nil || n != tokenBytes || raw[0] != tokenVersion {
		return tokenRef{}, errTokenString
	}
	generation := binary.BigEndian.Uint32(raw[2+grantIDBytes:])
	// generation 0 is the code and nothing else is
	if generation > maxGeneration || (generation == 0) != (kind == kindCode) {
		return tokenRef{}, errTokenString
	}
	return tokenRef{kind: kind, kid: raw[1], grantID: hex.EncodeToString(raw[2 : 2+grantIDBytes]),
		generation: int(generation), tag: raw[tagOffset:]}, nil
}

// verify reports whether the tag was made by this issuer for this grant's salt.
func (t *tokenStrings) verify(ref tokenRef, salt []byte) bool {
	if len(salt) == 0 {
		return false // the grant has ended
	}
	id, err := hex.DecodeString(ref.grantID)
	if err != nil {
		return false
	}
	raw := append([]byte{tokenVersion, ref.kid}, id...)
	raw = binary.BigEndian.AppendUint32(raw, uint32(ref.generation))
	want, err := t.tag(ref.kind, raw, salt)
	return err == nil && hmac.Equal(want, ref.tag)
}

// tag authenticates version, kid, grant id and generation, with the issuer and
// the salt, under the key of the kind.
func (t *tokenStrings) tag(kind string, raw, salt []byte) ([]byte, error) {
	purpose := keys.PurposeRefresh
	if kind == kindCode {
		purpose = keys.PurposeCode
	}
	key, err := t.secrets.Derive(raw[1], purpose)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, key)
	for _, part := range [][]byte{[]byte(t.issuer), raw, salt} {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return h.Sum(nil), nil
}
