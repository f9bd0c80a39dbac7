package resourceserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// maxMembers bounds an object that is read by name: no message, key or token has
// that many, and each costs a map entry.
const maxMembers = 1000

// object is a JSON object whose members are found by exact name.
type object map[string]json.RawMessage

// readObject parses one JSON object and nothing after it. Repeated members and
// invalid UTF-8 are errors: two parsers would read them differently.
func readObject(b []byte) (object, error) {
	if !utf8.Valid(b) {
		return nil, errors.New("invalid UTF-8")
	}
	list, err := members(b)
	if err != nil {
		return nil, err
	}
	o := make(object, len(list))
	for _, m := range list {
		if _, dup := o[m.name]; dup {
			return nil, errors.New("a member is repeated")
		}
		o[m.name] = b[m.start:m.end]
	}
	return o, nil
}

// span is a value of an object or an array: b[start:end] of what was read.
type span struct {
	name       string // of the member; "" in an array
	start, end int
}

// members returns the members of the JSON object b in their order, repeated ones
// too. Nothing but white space may follow.
func members(b []byte) ([]span, error) { return spans(b, '{', maxMembers) }

// elements returns those of the JSON array b, at most limit.
func elements(b []byte, limit int) ([]span, error) { return spans(b, '[', limit) }

func spans(b []byte, open json.Delim, limit int) ([]span, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	start, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if start != open {
		return nil, fmt.Errorf("want %v, have %v", open, start)
	}
	var list []span
	for dec.More() {
		if len(list) == limit {
			return nil, fmt.Errorf("more than %d values", limit)
		}
		var s span
		if open == '{' {
			name, err := dec.Token()
			if err != nil {
				return nil, err
			}
			s.name, _ = name.(string)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		s.end = int(dec.InputOffset())
		s.start = s.end - len(value)
		list = append(list, s)
	}
	if _, err := dec.Token(); err != nil { // the closing bracket
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the JSON value")
	}
	return list, nil
}

// checkCase refuses two members whose names differ by case alone, and one that
// differs so from a name that somebody behind us looks for: encoding/json takes
// "Method", and even "paramſ", for the name in lower case; others do not.
func checkCase(o object, known map[string]string) error {
	seen := make(map[string]bool, len(o))
	for name := range o {
		if !isPlain(name) {
			return errors.New("a member's name has a control character or half a surrogate pair")
		}
		folded := fold(name)
		if exact, ok := known[folded]; ok && exact != name || seen[folded] {
			return errors.New("a member's name differs from another by case alone")
		}
		seen[folded] = true
	}
	return nil
}

// foldedNames maps what names become by folding to the names.
func foldedNames(names ...string) map[string]string {
	m := make(map[string]string, len(names))
	for _, n := range names {
		m[fold(n)] = n
	}
	return m
}

// fold returns the same string for all that strings.EqualFold finds equal: of
// each letter the least one of its orbit.
func fold(s string) string {
	folded := make([]rune, 0, len(s))
	for _, r := range s {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		folded = append(folded, least)
	}
	return string(folded)
}

func (o object) has(name string) bool {
	_, ok := o[name]
	return ok
}

// str returns a member that is a string; false when it is absent or not one.
func (o object) str(name string) (string, bool) {
	raw, ok := o[name]
	if !ok {
		return "", false
	}
	return readString(raw)
}

// readString is strict where json.Unmarshal turns null into "".
func readString(raw json.RawMessage) (string, bool) { return stringOf(raw) }
