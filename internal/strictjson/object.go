// Package strictjson reads JSON that somebody else wrote (RFC 8259), for those who
// decide by it: tokens, keys, JSON-RPC messages. encoding/json takes the last of
// repeated members, folds the case of names ("AUD", even "iſs"), replaces half a
// surrogate pair, and other parsers do not; so members are found by their exact
// name, and what two parsers would read differently is refused. Nothing is copied
// but what is asked for: values stand in the text.
package strictjson

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// What is wrong with a text.
var (
	ErrForm     = errors.New("not one JSON value of the kind that is wanted")
	ErrTrailing = errors.New("something follows the JSON value")
	ErrEncoding = errors.New("not UTF-8")
	ErrRepeated = errors.New("a member is repeated")
	ErrBounds   = errors.New("nested too deeply or too many members")
)

// Bounds say how much is read: members of the object or elements of the array,
// and how deep its values may nest.
type Bounds struct{ Members, Depth int }

// Small bounds tokens, keys and documents. It is far above what there is in any.
var Small = Bounds{Members: 256, Depth: 32}

// Member is one member of an object, or an element of an array, which has no name.
type Member struct {
	// Name is decoded.
	Name []byte
	// Value is as it stands in the text, from At on.
	Value []byte
	At    int
}

// End is where the value ends in the text.
func (m Member) End() int { return m.At + len(m.Value) }

// Object is a JSON object whose members are found by exact name.
type Object []Member

// ReadObject parses one JSON object and nothing after it into the array of into.
func ReadObject(b []byte, into Object, bounds Bounds) (Object, error) {
	if !utf8.Valid(b) {
		return nil, ErrEncoding
	}
	s := scanner{b: b, bounds: bounds}
	list, err := s.object(into[:0])
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// ReadArray parses one JSON array and nothing after it. The elements have no names.
func ReadArray(b []byte, bounds Bounds) ([]Member, error) {
	if !utf8.Valid(b) {
		return nil, ErrEncoding
	}
	s := scanner{b: b, bounds: bounds}
	list, err := s.array(nil)
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Get returns a member's value as it stands; nil when it is absent.
func (o Object) Get(name string) []byte {
	for i := range o {
		if string(o[i].Name) == name {
			return o[i].Value
		}
	}
	return nil
}

// Has reports whether there is such a member, whatever its value.
func (o Object) Has(name string) bool { return o.Get(name) != nil }

// Str returns a member that is a string; false when it is absent or not one.
func (o Object) Str(name string) (string, bool) { return String(o.Get(name)) }

// Is reports whether a member is the string want. It copies nothing.
func (o Object) Is(name, want string) bool { return IsString(o.Get(name), want) }

// Strs reads a string or an array of strings; anything else is nil.
func (o Object) Strs(name string) []string {
	v := o.Get(name)
	if s, ok := String(v); ok {
		return []string{s}
	}
	return Strings(v)
}

// Seconds reads a member that is a NumericDate.
func (o Object) Seconds(name string) (time.Time, bool) { return Seconds(o.Get(name)) }

// Seconds reads a value that is a NumericDate (RFC 7519 §2): whole or fractional
// seconds within what a time.Time and a sane issuer can mean.
func Seconds(v []byte) (time.Time, bool) {
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

// IsString reports whether v, as it stands, is the JSON string want.
func IsString(v []byte, want string) bool {
	if plain, ok := plainString(v); ok {
		return string(plain) == want
	}
	s, ok := String(v)
	return ok && s == want
}

// String decodes a value that is a string; false when it is none. It is strict
// where json.Unmarshal turns null into "".
func String(v []byte) (string, bool) {
	if plain, ok := plainString(v); ok {
		return string(plain), true
	}
	if len(v) == 0 || v[0] != '"' {
		return "", false
	}
	var s string
	// Half a surrogate pair becomes U+FFFD: two subjects would be one.
	if json.Unmarshal(v, &s) != nil || strings.ContainsRune(s, utf8.RuneError) {
		return "", false
	}
	return s, true
}

// Strings decodes a value that is an array of which every element is a string;
// anything else is nil.
func Strings(v []byte) []string {
	if len(v) == 0 || v[0] != '[' {
		return nil
	}
	s := scanner{b: v, i: 1}
	list := []string{}
	for s.space(); s.peek() != ']'; s.space() {
		if len(list) > 0 {
			s.i++ // the comma; the text has been read before
			s.space()
		}
		from := s.i
		if s.peek() != '"' || s.text() != nil {
			return nil
		}
		element, ok := String(v[from:s.i])
		if !ok {
			return nil
		}
		list = append(list, element)
	}
	return list
}
