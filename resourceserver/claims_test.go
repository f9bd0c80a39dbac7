package resourceserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
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

// FuzzReadClaimSet holds our parser against readObject, which is encoding/json's
// decoder: the same texts are objects, with the same members.
func FuzzReadClaimSet(f *testing.F) {
	for _, s := range objectSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		got, err := readClaimSet(b, nil)
		if !bytes.Equal(before, b) {
			t.Fatal("the text was changed")
		}
		want, wantErr := readObject(b)
		if errors.Is(err, errTooDeep) {
			return // bounds that encoding/json does not have
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("readClaimSet(%q) = %v, readObject = %v", b, err, wantErr)
		}
		if len(got) != len(want) {
			t.Fatalf("readClaimSet(%q) has %d members, readObject %d", b, len(got), len(want))
		}
		for _, m := range got {
			sameMember(t, got, want, string(m.name))
		}
	})
}

func sameMember(t *testing.T, got claimSet, want object, name string) {
	t.Helper()
	if raw, ok := want[name]; !ok || !bytes.Equal(raw, got.get(name)) {
		t.Fatalf("%q = %q, readObject has %q", name, got.get(name), raw)
	}
	s, ok := got.str(name)
	wantS, wantOK := want.str(name)
	if s != wantS || ok != wantOK || wantOK && !got.is(name, wantS) {
		t.Fatalf("%q = %q, %v; readObject has %q, %v", name, s, ok, wantS, wantOK)
	}
	if list, wantList := got.strs(name), stringsOf(want[name]); !slices.Equal(list, wantList) {
		t.Fatalf("%q = %q, encoding/json has %q", name, list, wantList)
	}
	if at, ok := got.seconds(name); ok && at.Unix() < 0 {
		t.Fatalf("%q = %v", name, at)
	}
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

// FuzzSignedJWT takes foreign tokens apart: what comes out is what went in.
func FuzzSignedJWT(f *testing.F) {
	for _, s := range objectSeeds[:4] {
		f.Add(base64URL.EncodeToString([]byte(s)) + ".e30.AA")
		f.Add("eyJhbGciOiJFUzI1NiJ9." + base64URL.EncodeToString([]byte(s)) + ".AA")
	}
	for _, s := range []string{"", ".", "..", "a.b", "a.b.c.d.e", "e30.e30.AA", "eyJhbGciOjF9.e30.AB", "eyJhbGciOjF9.e30.A\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var j signedJWT
		if err := j.split(raw); err != nil {
			if e := (*refusal)(nil); !errors.As(err, &e) || e.status != http.StatusUnauthorized {
				t.Fatalf("split(%q) = %v, want a 401 refusal", raw, err)
			}
			return
		}
		if !j.header.has("alg") || j.signed+"."+base64URL.EncodeToString(j.signature) != raw {
			t.Fatalf("split(%q) = signed %q, signature %q", raw, j.signed, j.signature)
		}
	})
}

func TestReadClaimSetBounds(t *testing.T) {
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
		{"as deep as allowed", nested(maxDepth), nil},
		{"one too deep", nested(maxDepth + 1), errTooDeep},
		{"10,000 deep", nested(10000), errTooDeep},
		{"as many as allowed", many(maxClaims), nil},
		{"one too many", many(maxClaims + 1), errTooDeep},
		{"repeated", `{"a":1,"b":2,"a":1}`, errRepeated},
		{"repeated by an escape", `{"a":1,"\u0061":2}`, errRepeated},
		{"repeated further in, where nothing is read", `{"a":{"b":1,"b":2}}`, nil},
	} {
		t.Run("JW-18 "+tt.name, func(t *testing.T) {
			if _, err := readClaimSet([]byte(tt.text), nil); !errors.Is(err, tt.want) {
				t.Errorf("readClaimSet = %v, want %v", err, tt.want)
			}
		})
	}
}

// A token's JSON is read without a copy, except of what is kept.
func TestReadClaimSetAllocatesNothing(t *testing.T) {
	text := []byte(objectSeeds[1])
	var array [16]claim
	if n := testing.AllocsPerRun(100, func() {
		m, err := readClaimSet(text, array[:0])
		if err != nil || !m.is("sub", "s") {
			t.Fatal(m, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
