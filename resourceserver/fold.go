package resourceserver

import (
	"bytes"
	"errors"
	"unicode"
	"unicode/utf8"

	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// Bounds of what is read of a client and of the server behind us: no message has
// as many members, and arguments may nest further than a token does.
var bodyBounds = strictjson.Bounds{Members: 1000, Depth: 128}

// usualMembers is how many members hardly any object has more of.
const usualMembers = 8

// readObject parses one JSON object of a body and nothing after it.
func readObject(b []byte) (strictjson.Object, error) {
	return strictjson.ReadObject(b, make(strictjson.Object, 0, usualMembers), bodyBounds)
}

// readArray parses one JSON array of at most limit elements and nothing after it.
func readArray(b []byte, limit int) ([]strictjson.Member, error) {
	return strictjson.ReadArray(b, strictjson.Bounds{Members: limit, Depth: bodyBounds.Depth})
}

// checkCase refuses two members whose names differ by case alone, and one that
// differs so from a name that somebody behind us looks for: encoding/json takes
// "Method", and even "paramſ", for the name in lower case; others do not.
func checkCase(o strictjson.Object, known map[string]string) error {
	var buf [64]byte
	for _, m := range o {
		if !isPlain(string(m.Name)) {
			return errors.New("a member's name has a control character or half a surrogate pair")
		}
		if exact, ok := known[string(appendFolded(buf[:0], m.Name))]; ok && exact != string(m.Name) {
			return errCase
		}
	}
	if hasVariants(o) {
		return errCase
	}
	return nil
}

var errCase = errors.New("a member's name differs from another by case alone")

// hasVariants reports two members whose names differ by case alone. A few are
// compared with one another, which allocates nothing.
func hasVariants(o strictjson.Object) bool {
	if len(o) <= usualMembers {
		for i := range o {
			for _, m := range o[:i] {
				if bytes.EqualFold(m.Name, o[i].Name) {
					return true
				}
			}
		}
		return false
	}
	seen := make(map[string]bool, len(o))
	for _, m := range o {
		folded := string(appendFolded(nil, m.Name))
		if seen[folded] {
			return true
		}
		seen[folded] = true
	}
	return false
}

// foldedNames maps what names become by folding to the names.
func foldedNames(names ...string) map[string]string {
	m := make(map[string]string, len(names))
	for _, n := range names {
		m[string(appendFolded(nil, []byte(n)))] = n
	}
	return m
}

// appendFolded writes behind b the same for all names that bytes.EqualFold finds
// equal: of each letter the least one of its orbit.
func appendFolded(b, name []byte) []byte {
	for len(name) > 0 {
		r, size := utf8.DecodeRune(name)
		name = name[size:]
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		b = utf8.AppendRune(b, least)
	}
	return b
}
