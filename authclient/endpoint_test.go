package authclient

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// MM-16: what is no token is an error, nothing is stored, and nobody follows.
func TestMM16_TokenEndpoint(t *testing.T) {
	t.Parallel()
	elsewhere := 0
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	t.Cleanup(trap.Close)
	const good = `"access_token":"a","token_type":"Bearer"`
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
	}{
		{name: "token_type mac", answer: answerJSON(200, `{"access_token":"a","token_type":"mac"}`)},
		{name: "no token_type", answer: answerJSON(200, `{"access_token":"a"}`)},
		{name: "DPoP that was not asked for", answer: answerJSON(200, `{"access_token":"a","token_type":"DPoP"}`)},
		{name: "200 with an error body", answer: answerJSON(200, `{"error":"invalid_grant",`+good+`}`)},
		{name: "redirect", answer: func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, trap.URL, http.StatusTemporaryRedirect)
		}},
		{name: "10 MiB", answer: answerJSON(200, `{`+good+`,"x":"`+strings.Repeat("x", 10<<20)+`"}`)},
		{name: "a page", answer: func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(rw, `{`+good+`}`)
		}},
		{name: "said twice", answer: answerJSON(200, `{`+good+`,"access_token":"b"}`)},
		{name: "said twice in another case", answer: answerJSON(200, `{`+good+`,"Access_Token":"b"}`)},
		{name: "said twice in other letters", answer: answerJSON(200, "{"+good+",\"acce\u017fs_token\":\"b\"}")},
		{name: "a token that is a header", answer: answerJSON(200, `{"access_token":"a\r\nX: y","token_type":"Bearer"}`)},
		{name: "an empty token", answer: answerJSON(200, `{"access_token":"","token_type":"Bearer"}`)},
		{name: "no object", answer: answerJSON(200, `"a"`)},
		{name: "a scope that cannot be read", answer: answerJSON(200, `{`+good+`,"scope":"a\"b"}`)},
		{name: "201", answer: answerJSON(201, `{`+good+`}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.hook("POST /token", tt.answer)
			store := &brokenStore{Store: NewMemoryStore()}
			if _, err := call(t.Context(), w.client(func(o *Options) { o.Store = store }), ""); err == nil {
				t.Error("it was accepted")
			}
			for _, v := range store.saved {
				if strings.Contains(v, "access_token") {
					t.Errorf("stored %s", v)
				}
			}
		})
	}
	t.Cleanup(func() {
		if elsewhere > 0 {
			t.Errorf("a redirect from the token endpoint was followed %d times", elsewhere)
		}
	})
}

func TestTokenResponse(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		body string
		want time.Duration // until Expiry; 0: none
	}{
		{`"expires_in":60`, time.Minute}, {`"expires_in":"60"`, time.Minute}, {`"expires_in":1.5`, 1500 * time.Millisecond},
		{`"expires_in":-1`, 0}, {`"expires_in":null`, 0}, {`"expires_in":1e99`, 0}, {`"expires_in":"NaN"`, 0}, {`"expires_in":"Inf"`, 0}, {`"x":1`, 0},
	} {
		a := &answer{status: 200, header: http.Header{"Content-Type": {"application/json;charset=UTF-8"}},
			body: []byte(`{"access_token":"a","token_type":"bearer","scope":"x y",` + tt.body + `}`)}
		r, err := readTokenResponse(a, false, now)
		if err != nil || r.TokenType != typeBearer || len(r.Scope) != 2 {
			t.Errorf("%s: %v, %v", tt.body, r, err)
			continue
		}
		if tt.want == 0 && !r.Expiry.IsZero() || tt.want != 0 && !r.Expiry.Equal(now.Add(tt.want)) {
			t.Errorf("%s: expiry %v", tt.body, r.Expiry)
		}
	}
}

func FuzzTokenResponse(f *testing.F) {
	for _, s := range []string{`{"access_token":"a","token_type":"Bearer","expires_in":600,"refresh_token":"r","scope":"a b"}`,
		`{"error":"invalid_grant","error_description":"x\u001b[2J"}`, `{"access_token":"a","token_type":"DPoP"}`, `{"access_token":"a\n","token_type":"bearer"}`, `[]`} {
		f.Add([]byte(s))
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, body []byte) {
		a := &answer{status: 200, header: http.Header{"Content-Type": {"application/json"}}, body: body}
		r, err := readTokenResponse(a, false, now)
		if err == nil && (r.AccessToken == "" || strings.ContainsAny(r.AccessToken.Reveal(), " \r\n\x00") || r.TokenType == typeDPoP || r.Expiry.Before(now) && !r.Expiry.IsZero()) {
			t.Errorf("accepted %q", body)
		}
		if err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x202e }) {
			t.Errorf("unprintable: %q", err.Error())
		}
		if _, err := readRegistration(body, registrationRequest{}); err != nil && strings.ContainsRune(err.Error(), 0x1b) {
			t.Errorf("unprintable: %q", err.Error())
		}
	})
}

// MM-12: a public server cannot lead to the machine or its network, nor a loopback
// one to the network.
func TestMM12_C9_Reach(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, server, url string
		private, ok       bool
	}{
		{name: "public to public", server: "https://mcp.example/mcp", url: "https://as.example/token", ok: true},
		{name: "public to loopback", server: "https://mcp.example/mcp", url: "http://127.0.0.1:8080/token"},
		{name: "public to localhost", server: "https://mcp.example/mcp", url: "http://localhost:8080/token"},
		{name: "public to private", server: "https://mcp.example/mcp", url: "https://10.1.2.3/token"},
		{name: "public to private, allowed", server: "https://mcp.example/mcp", url: "https://10.1.2.3/token", private: true, ok: true},
		{name: "public to link-local, allowed or not", server: "https://mcp.example/mcp", url: "https://169.254.169.254/token", private: true},
		{name: "public to an address in other clothes", server: "https://mcp.example/mcp", url: "https://0x7f.1/token"},
		{name: "public to a mapped address", server: "https://mcp.example/mcp", url: "https://[::ffff:10.0.0.1]/token"},
		{name: "private server to itself", server: "https://10.1.2.3/mcp", url: "https://10.1.2.3/token", ok: true},
		{name: "private server to its neighbour", server: "https://10.1.2.3/mcp", url: "https://10.1.2.4/token"},
		{name: "loopback to loopback", server: "http://localhost:8000/mcp", url: "http://127.0.0.1:9000/token", ok: true},
		{name: "loopback to private", server: "http://localhost:8000/mcp", url: "https://10.1.2.3/token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			send := func(private bool) (bool, error) {
				d := &deaf{}
				c, err := New(Options{Server: tt.server, AllowPrivate: private, Transport: d})
				if err != nil {
					t.Fatal(err)
				}
				_, err = c.endpoint.post(t.Context(), "token", tt.url, formHeader(), []byte("client_secret=s"))
				return d.used, err
			}
			sent, err := send(tt.private)
			if sent != tt.ok || !tt.ok && !errors.Is(err, ErrRefused) {
				t.Errorf("sent %t, %v", sent, err)
			}
			if lifts, _ := send(true); errors.Is(err, ErrPrivateAddress) != (lifts && !sent) {
				t.Errorf("AllowPrivate lifts it: %t, %v", lifts && !sent, err)
			}
		})
	}
}

// The addresses behind names are looked at when they are dialled.
func TestMM12_C9_AddressesBehindNames(t *testing.T) {
	t.Parallel()
	listener := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	t.Cleanup(listener.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, listener.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := newForeignTransport(0).RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	c, _ := New(Options{Server: "https://mcp.example/mcp"})
	if got := c.endpoint.unanswered("token endpoint", req.URL, err); !errors.Is(got, ErrRefused) {
		t.Errorf("error %v", got)
	}
}

// TestSecretsStayInside: no error and no log line holds a token, a code, a verifier or
// a secret, whatever servers say.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log bytes.Buffer
	c := w.client(func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Registered = []RegisteredClient{{Issuer: w.as.URL, ClientID: "known", ClientSecret: "cl13nt-s3cret"}}
	})
	wantCall(t, c, "", http.StatusOK)
	w.advance(time600)
	w.hook("POST /token", answerJSON(500, `{"error":"server_error","error_description":"\u001b[2Jaccess-1 \u202e"}`))
	_, err := call(t.Context(), c, "")
	if err == nil {
		t.Fatal("no error")
	}
	text := log.String() + err.Error()
	for _, secret := range []string{"cl13nt-s3cret", "access-2", "refresh-2", "code-1", w.tokens[0].Get("code_verifier"), w.authorizations[0].Get("state")} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in %s", secret, text)
		}
	}
	if strings.ContainsAny(err.Error(), "\x1b\u202e") {
		t.Errorf("unprintable: %q", err)
	}
}

func TestBodyReplay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		body io.Reader
		size int
		want error
	}{
		{name: "with GetBody", body: strings.NewReader(strings.Repeat("x", 2*maxReplay)), size: 2 * maxReplay},
		{name: "kept", body: io.MultiReader(strings.NewReader("abc")), size: 3},
		{name: "none"},
		{name: "too large to be kept", body: io.MultiReader(strings.NewReader(strings.Repeat("x", maxReplay+5))), size: maxReplay + 5, want: ErrBodyGone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.client()
			send := func(body io.Reader) error {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url(), body)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := c.HTTPClient().Do(req)
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				return err
			}
			err := send(tt.body)
			if !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			if tt.want != nil { // authorized by now
				err = send(io.MultiReader(strings.NewReader(strings.Repeat("x", tt.size))))
			}
			if err != nil || len(w.mcpRequests) != 1 || len(w.mcpRequests[0]) != tt.size {
				t.Errorf("%v, %d requests", err, len(w.mcpRequests))
			}
		})
	}
}

func TestAuthorizeForSDKs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	ctx := context.Background()
	send := func(need string) (*http.Request, *http.Response) {
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, w.url(), nil)
		if g := c.session.current(); g != nil {
			req.Header.Set("Authorization", "Bearer "+g.AccessToken)
		}
		req.Header.Set("Need", need)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return req, resp
	}
	for _, step := range []struct {
		need string
		want int
	}{{"", http.StatusUnauthorized}, {"write", http.StatusForbidden}} {
		req, resp := send(step.need)
		if resp.StatusCode != step.want {
			t.Fatalf("need %q: %d, want %d", step.need, resp.StatusCode, step.want)
		}
		if err := c.Authorize(ctx, req, resp); err != nil {
			t.Fatal(err)
		}
	}
	if _, resp := send("write"); resp.StatusCode != http.StatusOK || len(w.authorizations) != 2 {
		t.Errorf("at last: %d, %d authorizations", resp.StatusCode, len(w.authorizations))
	}
}
