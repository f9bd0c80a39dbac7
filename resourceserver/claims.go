package resourceserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
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
	err := json.Unmarshal(v, &s)
	return s, err == nil
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

// scanner walks over JSON text (RFC 8259) and accepts what encoding/json does.
type scanner struct {
	b []byte
	i int
}

// peek returns the byte at hand, or 0 at the end, which no token begins with.
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// take steps over c and the space after it.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.i++
	s.space()
	return true
}

// object reads the outermost object.
func (s *scanner) object(list claimSet) (claimSet, error) {
	s.space()
	if !s.take('{') {
		return nil, errNotObject
	}
	if s.take('}') {
		return list, nil
	}
	for {
		m, err := s.member()
		if err != nil {
			return nil, err
		}
		if list.has(string(m.name)) {
			return nil, errRepeated
		}
		if len(list) == maxClaims {
			return nil, errTooDeep
		}
		list = append(list, m)
		if s.take('}') {
			return list, nil
		}
		if !s.take(',') {
			return nil, errNotObject
		}
	}
}

func (s *scanner) member() (claim, error) {
	from := s.i
	if err := s.text(); err != nil {
		return claim{}, err
	}
	name, plain := plainString(s.b[from:s.i])
	if !plain {
		decoded, ok := stringOf(s.b[from:s.i])
		if !ok {
			return claim{}, errNotObject
		}
		name = []byte(decoded)
	}
	if s.space(); !s.take(':') {
		return claim{}, errNotObject
	}
	from = s.i
	if err := s.value(0); err != nil {
		return claim{}, err
	}
	m := claim{name: name, value: s.b[from:s.i]}
	s.space()
	return m, nil
}

// value steps over any value.
func (s *scanner) value(depth int) error {
	switch c := s.peek(); {
	case c == '"':
		return s.text()
	case c == '{':
		return s.nested('}', depth, true)
	case c == '[':
		return s.nested(']', depth, false)
	case c == '-' || isDigit(c):
		return s.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(s.b[s.i:], []byte(word)) {
			s.i += len(word)
			return nil
		}
	}
	return errNotObject
}

// nested steps over an object or array within the outermost object. Names in it
// may repeat: nothing reads them.
func (s *scanner) nested(end byte, depth int, named bool) error {
	if depth == maxDepth {
		return errTooDeep
	}
	s.i++
	if s.space(); s.peek() == end {
		s.i++
		return nil
	}
	for {
		if named {
			if err := s.text(); err != nil {
				return err
			}
			if s.space(); !s.take(':') {
				return errNotObject
			}
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
		s.space()
		if s.peek() == end {
			s.i++
			return nil
		}
		if !s.take(',') {
			return errNotObject
		}
	}
}

// text steps over a string.
func (s *scanner) text() error {
	if s.peek() != '"' {
		return errNotObject
	}
	for s.i++; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return nil
		case c < 0x20:
			return errNotObject
		case c == '\\':
			if !s.escape() {
				return errNotObject
			}
		}
	}
	return errNotObject
}

// escape steps onto the last byte of an escape sequence.
func (s *scanner) escape() bool {
	s.i++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			s.i++
			if c := s.peek() | 0x20; !isDigit(s.peek()) && (c < 'a' || c > 'f') {
				return false
			}
		}
		return true
	}
	return false
}

// number steps over a number: no leading zero, no bare point or exponent.
func (s *scanner) number() error {
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++
	} else if !s.digits() {
		return errNotObject
	}
	if s.peek() == '.' {
		s.i++
		if !s.digits() {
			return errNotObject
		}
	}
	if s.peek()|0x20 == 'e' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return errNotObject
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	from := s.i
	for isDigit(s.peek()) {
		s.i++
	}
	return s.i > from
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
