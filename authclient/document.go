package authclient

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// readObject reads a JSON object of a server. Two members whose names differ by case
// alone are refused: encoding/json, with which documents are read further, would take
// the last of them and others the first.
func readObject(body []byte) (strictjson.Object, error) {
	o, err := strictjson.ReadObject(body, nil, strictjson.Small)
	if err != nil {
		return nil, fmt.Errorf("the answer is not a JSON object: %w", err)
	}
	names := make([]string, len(o))
	for i, m := range o {
		names[i] = foldName(string(m.Name))
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(o) {
		return nil, errors.New("the answer says one thing twice")
	}
	return o, nil
}

// foldedLetters are the letters beyond ASCII that fold into it: the long s and the
// Kelvin sign.
var foldedLetters = strings.NewReplacer("\u017f", "s", "\u212a", "k")

// foldName is one spelling of what encoding/json takes for the same name.
func foldName(s string) string { return foldedLetters.Replace(strings.ToLower(s)) }
