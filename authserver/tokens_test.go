package authserver

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

func newTokenStrings(tb testing.TB) *tokenStrings {
	tb.Helper()
	return &tokenStrings{secrets: keys.GenerateSecrets(), issuer: "https://id.example"}
}

func randomGrant(tb testing.TB) (id string, salt []byte) {
	tb.Helper()
	raw := make([]byte, 48)
	if _, err := rand.Read(raw); err != nil {
		tb.Fatal(err)
	}
	return hex.EncodeToString(raw[:16]), raw[16:]
}

func TestTokenStringsRoundTrip(t *testing.T) {
	ts := newTokenStrings(t)
	id, salt := randomGrant(t)
	for generation, kind := range map[int]string{0: kindCode, 1: kindRefresh, 70000: kindRefresh} {
		s, err := ts.mint(id, generation, salt)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := ts.parse(kind, s)
		if err != nil {
			t.Fatalf("parse of generation %d: %v", generation, err)
		}
		if ref.grantID != id || ref.generation != generation {
			t.Errorf("parse = %s/%d, want %s/%d", ref.grantID, ref.generation, id, generation)
		}
		if !ts.verify(ref, salt) {
			t.Errorf("generation %d: own tag does not verify", generation)
		}
		again, _ := ts.mint(id, generation, salt)
		if !again.Equal(s) {
			t.Errorf("generation %d: the string is not the same again (D8)", generation)
		}
	}
}

func TestCO12_TokenStringAlphabetAndEntropy(t *testing.T) {
	ts := newTokenStrings(t)
	const n = 1_000_000
	seen := make(map[string]struct{}, n)
	id, _ := randomGrant(t)
	salt := make([]byte, 32)
	for i := range n {
		// one grant id and a counting salt: every difference comes from the tag
		salt[0], salt[1], salt[2] = byte(i), byte(i>>8), byte(i>>16)
		s, err := ts.mint(id, 0, salt)
		if err != nil {
			t.Fatal(err)
		}
		text := s.Reveal()
		if i%1000 == 0 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Fatalf("a code has a character outside [A-Za-z0-9_-]")
		}
		seen[text] = struct{}{}
	}
	if len(seen) != n {
		t.Errorf("%d different codes of %d", len(seen), n)
	}
}

func TestTokenStringsRefuse(t *testing.T) {
	ts := newTokenStrings(t)
	id, salt := randomGrant(t)
	code, _ := ts.mint(id, 0, salt)
	refresh, _ := ts.mint(id, 1, salt)
	body := strings.TrimPrefix(code.Reveal(), kindCode)
	for name, tt := range map[string]struct{ kind, raw string }{
		"empty":                         {kindCode, ""},
		"prefix alone":                  {kindCode, kindCode},
		"refresh token as a code":       {kindCode, refresh.Reveal()},
		"code as a refresh token":       {kindRefresh, code.Reveal()},
		"code under the other prefix":   {kindRefresh, kindRefresh + body},
		"one character short":           {kindCode, code.Reveal()[:len(code.Reveal())-1]},
		"one character long":            {kindCode, code.Reveal() + "A"},
		"a newline that base64 ignores": {kindCode, kindCode + body[:10] + "\n" + body[11:]},
		"padding":                       {kindCode, kindCode + body[:len(body)-1] + "="},
		"standard alphabet":             {kindCode, kindCode + "+" + body[1:]},
		"another version":               {kindCode, kindCode + "Ag" + body[2:]},
	} {
		if _, err := ts.parse(tt.kind, oauth.Secret(tt.raw)); err == nil {
			t.Errorf("%s: parsed", name)
		}
	}
}

func TestTokenStringsForgery(t *testing.T) {
	ts := newTokenStrings(t)
	id, salt := randomGrant(t)
	code, _ := ts.mint(id, 0, salt)
	ref, err := ts.parse(kindCode, code)
	if err != nil {
		t.Fatal(err)
	}
	changed := ref
	changed.tag = bytes.Clone(ref.tag)
	changed.tag[31] ^= 1
	otherID, otherSalt := randomGrant(t)
	moved := ref
	moved.grantID = otherID
	ahead := ref
	ahead.generation++
	unknownKID := ref
	unknownKID.kid = 200
	otherIssuer := &tokenStrings{secrets: ts.secrets, issuer: "https://id.example/tenant"}
	otherSecret := &tokenStrings{secrets: keys.GenerateSecrets(), issuer: ts.issuer}
	for name, ok := range map[string]bool{
		"a flipped bit of the tag":          ts.verify(changed, salt),
		"the tag on another grant":          ts.verify(moved, salt),
		"the tag on another generation":     ts.verify(ahead, salt),
		"a kid that is not ours":            ts.verify(unknownKID, salt),
		"another salt (ST-02: own row)":     ts.verify(ref, otherSalt),
		"an erased salt (ended grant)":      ts.verify(ref, nil),
		"CO-10 another issuer":              otherIssuer.verify(ref, salt),
		"ST-02 database without the secret": otherSecret.verify(ref, salt),
	} {
		if ok {
			t.Errorf("%s: verified", name)
		}
	}
}

func FuzzTokenString(f *testing.F) {
	ts := &tokenStrings{secrets: keys.GenerateSecrets(), issuer: "https://id.example"}
	id, salt := "000102030405060708090a0b0c0d0e0f", bytes.Repeat([]byte{7}, 32)
	for _, generation := range []int{0, 1, 1 << 30} {
		s, err := ts.mint(id, generation, salt)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(s.Reveal())
	}
	f.Add("ost_ac_")
	f.Add("ost_rt_" + strings.Repeat("A", 72))
	f.Fuzz(func(t *testing.T, raw string) {
		for _, kind := range []string{kindCode, kindRefresh} {
			ref, err := ts.parse(kind, oauth.Secret(raw))
			if err != nil {
				continue
			}
			// what parses has exactly one spelling
			if !ts.verify(ref, salt) {
				continue
			}
			again, err := ts.mint(ref.grantID, ref.generation, salt)
			if err != nil || again.Reveal() != raw {
				t.Fatalf("a verified string is not what we mint")
			}
		}
	})
}
