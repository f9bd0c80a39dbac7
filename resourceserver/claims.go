package resourceserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of the JSON in a token. They are far above what issuers send.
const (
	maxDepth  = 32
	maxClaims = 256
)

var (
	errNotObject = errors.New("not one JSON object")
	errRepeated  = errors.New("a member is repeated")
	errTooDeep   = errors.New("nested too deeply or too many members")
)

// claim is one member of a JSON object: its name, decoded, and its value as it
// stands in the text.
type claim struct{ name, value []byte }

// claimSet is a JSON object whose members are found by exact name. It reads a
// token's header and claims without a map and without copying, for that is done
// anew for each token; readObject is the same for bodies, where time matters less,
// and its oracle (FuzzReadClaimSet).
type claimSet []claim

// readClaimSet parses one JSON object and nothing after it into list's array.
// Repeated members and invalid UTF-8 are errors: two parsers would read them
// differently. encoding/json would also take "AUD" or "iſs" for ours (JW-18).
func readClaimSet(b []byte, list claimSet) (claimSet, error) {
	if !utf8.Valid(b) {
		return nil, errNotObject
	}
	s := scanner{b: b}
	list, err := s.object(list[:0])
	if err != nil {
		return nil, err
	}
	if s.space(); s.i != len(b) {
		return nil, errNotObject
	}
	return list, nil
}

// get returns a member's value as it stands; nil when it is absent.
func (c claimSet) get(name string) []byte {
	for i := range c {
		if string(c[i].name) == name {
			return c[i].value
		}
	}
	return nil
}

func (c claimSet) has(name string) bool { return c.get(name) != nil }

// str returns a member that is a string; false when it is absent or not one.
func (c claimSet) str(name string) (string, bool) { return stringOf(c.get(name)) }

// is reports whether a member is the string want. It copies nothing.
func (c claimSet) is(name, want string) bool { return isString(c.get(name), want) }

// isString reports whether v, as it stands, is the JSON string want.
func isString(v []byte, want string) bool {
	if plain, ok := plainString(v); ok {
		return string(plain) == want
	}
	s, ok := stringOf(v)
	return ok && s == want
}

// strs reads a string or an array of strings; anything else is nil.
func (c claimSet) strs(name string) []string {
	v := c.get(name)
	if s, ok := stringOf(v); ok {
		return []string{s}
	}
	return arrayOf(v)
}

// seconds reads a NumericDate (RFC 7519 §2): whole or fractional seconds within
// what a time.Time and a sane issuer can mean.
func (c claimSet) seconds(name string) (time.Time, bool) {
	v := c.get(name)
	if len(v) == 0 || v[0] == '"' {
		return time.Time{}, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1<<40 {
		return time.Time{}, false
	}
	whole, frac := math.Modf(f)
	return time.Unix(int64(whole), int64(frac*1e9)), true
}

// plainString returns the inside of a JSON string without escapes.
func plainString(v []byte) ([]byte, bool) {
	if len(v) < 2 || v[0] != '"' || bytes.IndexByte(v, '\\') >= 0 {
		return nil, false
	}
	return v[1 : len(v)-1], true
}

func stringOf(v []byte) (string, bool) {
	if plain, ok := plainString(v); ok {
		return string(plain), true
	}
	if len(v) == 0 || v[0] != '"' {
		return "", false
	}
	var s string
	// Half a surrogate pair becomes U+FFFD: two subjects would be one (JW-18).
	if json.Unmarshal(v, &s) != nil || strings.ContainsRune(s, utf8.RuneError) {
		return "", false
	}
	return s, true
}

// arrayOf reads an array of which every element is a string.
func arrayOf(v []byte) []string {
	if len(v) == 0 || v[0] != '[' {
		return nil
	}
	s := scanner{b: v, i: 1}
	list := []string{}
	for s.space(); s.peek() != ']'; s.space() {
		if len(list) > 0 {
			s.i++ // the comma; readClaimSet has checked the text
			s.space()
		}
		from := s.i
		if s.peek() != '"' || s.text() != nil {
			return nil
		}
		element, ok := stringOf(v[from:s.i])
		if !ok {
			return nil
		}
		list = append(list, element)
	}
	return list
}
