package resourceserver_test

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/asn1"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// nothing is the empty handler that everything is measured on top of.
var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// sink is a ResponseWriter that costs nothing itself.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(int)             {}

// BenchmarkFloor is what no verification can do without: the standard library's
// check of the same ES256 signature, and nothing else.
func BenchmarkFloor(b *testing.B) {
	f := newFixture(b)
	signed, signature := cutSignature(b, f.token(b, "notes:read"))
	key := f.issuer.signers["ec-1"].Public().(*ecdsa.PublicKey)
	b.ReportAllocs()
	for b.Loop() {
		digest := sha256.Sum256([]byte(signed))
		if !ecdsa.VerifyASN1(key, digest[:], signature) {
			b.Fatal("the signature is not valid")
		}
	}
}

// cutSignature returns what is signed, and the signature as ASN.1.
func cutSignature(b *testing.B, token string) (string, []byte) {
	b.Helper()
	dot := strings.LastIndexByte(token, '.')
	raw := decode(b, token[dot+1:])
	der, err := asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(raw[:32]), new(big.Int).SetBytes(raw[32:])})
	if err != nil {
		b.Fatal(err)
	}
	return token[:dot], der
}

// BenchmarkEmpty is a handler behind nothing.
func BenchmarkEmpty(b *testing.B) { serve(b, nothing, newFixture(b)) }

// BenchmarkFirstSight verifies the token anew in each request.
func BenchmarkFirstSight(b *testing.B) {
	f := newFixture(b, func(o *resourceserver.Options) { o.TokenCache = -1 })
	serve(b, f.server.Protect(nothing), f)
}

// BenchmarkCached is every request of a token but its first.
func BenchmarkCached(b *testing.B) {
	f := newFixture(b)
	serve(b, f.server.Protect(nothing), f)
}

// BenchmarkCachedParallel is the same on all processors.
func BenchmarkCachedParallel(b *testing.B) {
	f := newFixture(b)
	h, token := f.server.Protect(nothing), f.token(b, "notes:read")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		r, w := request(token)
		authorization := r.Header["Authorization"]
		for pb.Next() {
			clear(w.header)
			r.Header["Authorization"] = authorization // Protect takes it off
			h.ServeHTTP(w, r)
		}
	})
}

func request(token string) (*http.Request, *sink) {
	r := httptest.NewRequest(http.MethodPost, testResource, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r, &sink{header: http.Header{}}
}

func serve(b *testing.B, h http.Handler, f *fixture) {
	b.Helper()
	r, w := request(f.token(b, "notes:read"))
	authorization := r.Header["Authorization"]
	h.ServeHTTP(w, r) // the keys are fetched
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		r.Header["Authorization"] = authorization // Protect takes it off
		h.ServeHTTP(w, r)
	}
	if w.header.Get("WWW-Authenticate") != "" {
		b.Fatal("the request was refused")
	}
}
