package resourceserver

import (
	"errors"
	"unicode"

	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// Bounds of what is read of a client and of the server behind us: no message has
// as many members, and arguments may nest further than a token does.
var bodyBounds = strictjson.Bounds{Members: 1000, Depth: 1000}

// readObject parses one JSON object of a body and nothing after it.
func readObject(b []byte) (strictjson.Object, error) {
	return strictjson.ReadObject(b, nil, bodyBounds)
}

// readArray parses one JSON array of at most limit elements and nothing after it.
func readArray(b []byte, limit int) ([]strictjson.Member, error) {
	return strictjson.ReadArray(b, strictjson.Bounds{Members: limit, Depth: bodyBounds.Depth})
}

// checkCase refuses two members whose names differ by case alone, and one that
// differs so from a name that somebody behind us looks for: encoding/json takes
// "Method", and even "paramſ", for the name in lower case; others do not.
func checkCase(o strictjson.Object, known map[string]string) error {
	seen := make(map[string]bool, len(o))
	for _, m := range o {
		name := string(m.Name)
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
