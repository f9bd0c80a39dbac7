package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var objectSeeds = []string{
	`{"typ":"at+jwt","alg":"ES256","kid":"a"}`,
	`{"iss":"https://a.example","aud":["https://m.example/mcp", "b"],"exp":1e9,"sub":"s","scope":"a b"}`,
	`{"iſs":"https://a.example"}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":"\ud800"}`, `{"\ud800":1,"\ud801":2}`,
	"\xef\xbb\xbf{}", "{\"a\":\"\x00\"}", "{\"a\":\"\xff\"}", `{}{}`, `{} `, ` { } x`, `{"a":01}`, `{"a":1.}`, `{"a":-}`,
	`{"a":1e}`, `{"a":1E+2}`, `{"a":.5}`, `{"a":+1}`, `{"a":NaN}`, `{"a":tru}`, `{"a":truex}`, `{"a":[1,]}`, `{"a":[,1]}`,
	`{"a":{"b":1,"b":2}}`, `{"a":{"b"}}`, `{"a":{1:2}}`, `{"a" 1}`, `{"a":1 "b":2}`, `{"a":1,}`, `{,}`, `{"a":"\x"}`,
	`{"a":"\u12g4"}`, `{"a":"`, `{"a`, `[]`, `null`, `"a"`, ``, ` `, `{"a":[[[[]]],{}]}`, `{"a":"b",}`, `{'a':1}`, `{"a":/**/1}`,
}

// FuzzReadObject holds our parser against encoding/json's decoder: the same texts
// are objects, with the same members.
func FuzzReadObject(f *testing.F) {
	for _, s := range objectSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		got, err := ReadObject(b, nil, Small)
		if !bytes.Equal(before, b) {
			t.Fatal("the text was changed")
		}
		want, wantErr := readObject(b)
		if errors.Is(err, ErrBounds) || err != nil && bytes.Contains(b, []byte(`\u`)) {
			return // bounds that encoding/json does not have, or half a surrogate pair in a name
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("ReadObject(%q) = %v, encoding/json %v", b, err, wantErr)
		}
		if len(got) != len(want) {
			t.Fatalf("ReadObject(%q) has %d members, encoding/json %d", b, len(got), len(want))
		}
		for _, m := range got {
			sameMember(t, got, want, string(m.Name))
		}
	})
}

func sameMember(t *testing.T, got Object, want map[string]json.RawMessage, name string) {
	t.Helper()
	if raw, ok := want[name]; !ok || !bytes.Equal(raw, got.Get(name)) {
		t.Fatalf("%q = %q, encoding/json has %q", name, got.Get(name), raw)
	}
	s, ok := got.Str(name)
	wantS, wantOK := readString(want[name])
	if s != wantS || ok != wantOK || wantOK && !got.Is(name, wantS) {
		t.Fatalf("%q = %q, %v; encoding/json has %q, %v", name, s, ok, wantS, wantOK)
	}
	if list, wantList := got.Strs(name), stringsOf(want[name]); !slices.Equal(list, wantList) {
		t.Fatalf("%q = %q, encoding/json has %q", name, list, wantList)
	}
	if at, ok := got.Seconds(name); ok && at.Unix() < 0 {
		t.Fatalf("%q = %v", name, at)
	}
}

// readObject is what ReadObject does, by encoding/json.
func readObject(b []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(b) {
		return nil, errors.New("invalid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.New("no object")
	}
	o := map[string]json.RawMessage{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		if _, repeated := o[name.(string)]; repeated {
			return nil, errors.New("repeated")
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, err
		}
		o[name.(string)] = v
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the object")
	}
	return o, nil
}

func readString(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	if json.Unmarshal(raw, &s) != nil || bytes.Contains(raw, []byte(`\`)) && strings.ContainsRune(s, utf8.RuneError) {
		return "", false
	}
	return s, true
}

// stringsOf is encoding/json's reading of a string or an array of strings.
func stringsOf(raw json.RawMessage) []string {
	if s, ok := readString(raw); ok {
		return []string{s}
	}
	var raws []json.RawMessage
	if json.Unmarshal(raw, &raws) != nil {
		return nil
	}
	var list []string
	for _, r := range raws {
		s, ok := readString(r)
		if !ok {
			return nil
		}
		list = append(list, s)
	}
	return list
}

func TestReadObjectBounds(t *testing.T) {
	t.Parallel()
	nested := func(n int) string {
		return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}"
	}
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`,"` + strings.Repeat("a", i+1) + `":1`)
		}
		return "{" + b.String()[1:] + "}"
	}
	for _, tt := range []struct {
		name, text string
		want       error
	}{
		{"as deep as allowed", nested(Small.Depth), nil},
		{"one too deep", nested(Small.Depth + 1), ErrBounds},
		{"10,000 deep", nested(10000), ErrBounds},
		{"as many as allowed", many(Small.Members), nil},
		{"one too many", many(Small.Members + 1), ErrBounds},
		{"repeated", `{"a":1,"b":2,"a":1}`, ErrRepeated},
		{"repeated by an escape", `{"a":1,"\u0061":2}`, ErrRepeated},
		{"the first of many again", many(100)[:len(many(100))-1] + `,"a":1}`, ErrRepeated},
		{"the last of many again", many(100)[:len(many(100))-1] + `,"` + strings.Repeat("a", 100) + `":1}`, ErrRepeated},
		{"the first beyond a few again", many(17)[:len(many(17))-1] + `,"` + strings.Repeat("a", 17) + `":1}`, ErrRepeated},
		{"repeated further in, where nothing is read", `{"a":{"b":1,"b":2}}`, nil},
	} {
		t.Run("JW-18 "+tt.name, func(t *testing.T) {
			if _, err := ReadObject([]byte(tt.text), nil, Small); !errors.Is(err, tt.want) {
				t.Errorf("ReadObject = %v, want %v", err, tt.want)
			}
		})
	}
}

// Eight times the members take about eight times as long, not sixty-four times:
// a body of 4 MiB has room for many objects of many members.
func TestReadObjectTakesTimeByLength(t *testing.T) {
	measure := func(n int) time.Duration {
		text, best := []byte(wide(n)), time.Duration(math.MaxInt64)
		list := make(Object, 0, n)
		for range 5 {
			start := time.Now()
			if _, err := ReadObject(text, list, Bounds{Members: n, Depth: 1}); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	if few, many := measure(2000), measure(16000); many > 24*few {
		t.Errorf("2,000 members take %s, 16,000 %s", few, many)
	}
}

// wide is an object of n members whose names differ at their ends.
func wide(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"a%06d":0`, i)
	}
	return "{" + b.String()[1:] + "}"
}

func BenchmarkReadObject(b *testing.B) {
	for _, n := range []int{4, 8, 16, 17, 32, 256, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			text, list := []byte(wide(n)), make(Object, 0, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ReadObject(text, list, Bounds{Members: n, Depth: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A token's JSON is read without a copy, except of what is kept.
func TestReadObjectAllocatesNothing(t *testing.T) {
	text := []byte(objectSeeds[1])
	var array [16]Member
	if n := testing.AllocsPerRun(100, func() {
		m, err := ReadObject(text, array[:0], Small)
		if err != nil || !m.Is("sub", "s") {
			t.Fatal(m, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// FuzzReadArray: the elements are those that encoding/json finds, where they stand.
func FuzzReadArray(f *testing.F) {
	for _, s := range append([]string{"[]", " [ ] ", "[1,]", "[,1]", "[1 2]", "[1", "[{\"a\":[1]},\"b\",null]", "[]]", "[\xff]"}, objectSeeds...) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ReadArray(b, Small)
		if errors.Is(err, ErrBounds) {
			return
		}
		var want []json.RawMessage
		wantErr := json.Unmarshal(b, &want)
		if isArray := bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("[")); !isArray || !utf8.Valid(b) {
			wantErr = errors.New("no array")
		}
		if (err == nil) != (wantErr == nil) || err == nil && len(got) != len(want) {
			t.Fatalf("ReadArray(%q) = %d elements, %v; encoding/json %d, %v", b, len(got), err, len(want), wantErr)
		}
		for i, m := range got {
			if !bytes.Equal(m.Value, want[i]) || !bytes.Equal(b[m.At:m.End()], want[i]) {
				t.Fatalf("element %d of %q is %q, want %q", i, b, m.Value, want[i])
			}
		}
	})
}
