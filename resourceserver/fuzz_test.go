package resourceserver

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzBearerToken(f *testing.F) {
	for _, s := range []string{"", "Bearer a", "bearer  a", "Bearer a b", "Basic YTpi", "Bearer ä", "Bearer =", "Bearer a=="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		token, err := bearerToken(http.Header{"Authorization": {value}})
		if (err == nil) != (token != "") {
			t.Fatalf("bearerToken(%q) = %q, %v", value, token, err)
		}
		if err == nil && !isToken68(token) {
			t.Fatalf("bearerToken(%q) = %q", value, token)
		}
	})
}

func FuzzReadOperations(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`,
		`[{"method":"ping"},{"method":"prompts/get","params":{"name":"p"}}]`,
		`{"method":"ping","Method":"tools/call"}`, `{"method":"a","method":"b"}`, `[]`, `{}`, "\xff", `{"method":1}`, `{}{}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		first, err := readOperations(body)
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed: what is forwarded is not what was checked")
		}
		again, errAgain := readOperations(body)
		if cmp.Diff(first, again) != "" || (err == nil) != (errAgain == nil) {
			t.Fatalf("two readings differ: %v %v, %v %v", first, err, again, errAgain)
		}
		for _, op := range first {
			if op.Method != "" && namedBy[op.Method] == "" && op.Name != "" {
				t.Fatalf("%v has a name that its method does not have", op)
			}
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	for _, s := range []string{
		`{"keys":[]}`, `{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`, `{"keys":[{"kty":"oct","k":"AA"}]}`,
		`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`, `{"keys":[1]}`, `{"keys":[{"kty":"EC","kty":"RSA"}]}`, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, err := parseKeys(b)
		if err != nil && keys != nil {
			t.Fatalf("parseKeys = %v, %v", keys, err)
		}
		for _, k := range keys {
			if len(k.algorithms) == 0 || k.public == nil {
				t.Fatalf("a key of no use: %+v", k)
			}
		}
	})
}
