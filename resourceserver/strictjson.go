package resourceserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// object is a JSON object whose members are found by exact name.
type object map[string]json.RawMessage

// readObject parses one JSON object and nothing after it. Repeated members and
// invalid UTF-8 are errors: two parsers would read them differently.
func readObject(b []byte) (object, error) {
	if !utf8.Valid(b) {
		return nil, errors.New("invalid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	o, err := decodeObject(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the JSON value")
	}
	return o, nil
}

func decodeObject(dec *json.Decoder) (object, error) {
	start, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if start != json.Delim('{') {
		return nil, fmt.Errorf("want an object, have %v", start)
	}
	o := object{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := name.(string)
		if _, dup := o[key]; dup {
			return nil, errors.New("a member is repeated")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		o[key] = value
	}
	_, err = dec.Token() // the closing brace
	return o, err
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
func readString(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}
