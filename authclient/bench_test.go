package authclient

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// instant is a server that has answered already.
type instant struct{ answer http.Response }

func (i *instant) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	resp := i.answer
	resp.Body, resp.Request = http.NoBody, req
	return &resp, nil
}

// What a request costs beside the network when the token is good: a Client's, beside
// oauth2.Transport, which does nothing but set the header; a DPoP proof, beside the
// signature in it.
func BenchmarkRoundTrip(b *testing.B) {
	const server = "http://127.0.0.1:1/mcp"
	answers := &instant{http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}}}
	client := func(tokenType string, key *proofKey) http.RoundTripper {
		c, err := New(Options{Server: server, Transport: answers})
		if err != nil {
			b.Fatal(err)
		}
		now := time.Now()
		g := &grant{AccessToken: strings.Repeat("t", 534), TokenType: tokenType, Issued: now, Expiry: now.Add(24 * time.Hour)}
		if key != nil {
			if g.Key, err = key.encode(); err != nil {
				b.Fatal(err)
			}
		}
		c.session.set(g)
		return c
	}
	key, err := newProofKey()
	if err != nil {
		b.Fatal(err)
	}
	body := bytes.Repeat([]byte("b"), 1024)
	for _, bench := range []struct {
		name string
		via  http.RoundTripper
	}{
		{"oauth2", &oauth2.Transport{Base: answers, Source: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: strings.Repeat("t", 534)})}},
		{"authclient", client("Bearer", nil)},
		{"authclient-dpop", client(typeDPoP, key)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, server, bytes.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				resp, err := bench.via.RoundTrip(req)
				if err != nil || resp.StatusCode != http.StatusOK {
					b.Fatal(resp, err)
				}
			}
		})
	}
	b.Run("ecdsa-sign", func(b *testing.B) {
		signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ecdsa.SignASN1(rand.Reader, signer, body[:32]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
