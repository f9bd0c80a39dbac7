package authserver_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/registration"
)

const formType = "application/x-www-form-urlencoded"

// raw sends a body to /token as it stands.
func (k *kit) raw(method, target, body string, header http.Header) answer {
	k.t.Helper()
	req, err := http.NewRequestWithContext(k.ctx, method, k.URL(target), strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("Content-Type", formType)
	for name, v := range header {
		req.Header[name] = v
	}
	got, err := k.send(req)
	if err != nil {
		k.t.Fatal(err)
	}
	return got
}

// codeForm is the request that redeems a code of a public client.
func codeForm(a app, code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "client_id": {a.id}, "code": {code},
		"redirect_uri": {a.redirect}, "code_verifier": {verifier}}
}

func TestTK01_GetIsRefused(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		code := k.code(a, nil)
		form := codeForm(a, code)
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			k.changesOnly(func() {
				got := k.raw(method, "/token?"+form.Encode(), "", nil)
				if allow := got.header.Get("Allow"); got.status != http.StatusMethodNotAllowed || !strings.Contains(allow, "POST") || strings.Contains(allow, "GET") {
					t.Errorf("%s /token: %d, Allow %q; want 405, POST", method, got.status, allow)
				}
			})
		}
		for _, secret := range []string{code, verifier} {
			if strings.Contains(k.Logs.String(), secret) {
				t.Errorf("the query was logged")
			}
		}
		want(t, k.redeem(a, code, nil), 200, "")
	})
}

func TestTK02_NothingFromTheQuery(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		code := k.code(a, nil)
		form := codeForm(a, code)
		k.denied(400, "invalid_request", func() answer { return k.raw("POST", "/token?"+form.Encode(), "", nil) })
		k.denied(400, "invalid_request", func() answer { return k.raw("POST", "/token?"+form.Encode(), form.Encode(), nil) })
		for name := range form {
			query, body := url.Values{name: form[name]}, changed(codeForm(a, code), url.Values{name: nil})
			k.denied(400, "invalid_request", func() answer { return k.raw("POST", "/token?"+query.Encode(), body.Encode(), nil) })
		}
		want(t, k.redeem(a, code, nil), 200, "")
	})
}

func TestTK04_RepeatedParameters(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		code := k.code(a, nil)
		body := codeForm(a, code).Encode()
		for _, more := range []string{"code=" + code, "code=other", "grant_type=authorization_code", "grant_type=refresh_token",
			"client_id=" + a.id, "client_id=other", "scope=files:read&scope=files:write", "code_verifier=" + verifier,
			"redirect_uri=" + url.QueryEscape(a.redirect), "unknown=1&unknown=2"} {
			k.denied(400, "invalid_request", func() answer { return k.raw("POST", "/token", body+"&"+more, nil) })
			k.denied(400, "invalid_request", func() answer { return k.raw("POST", "/token", more+"&"+body, nil) })
		}
		// RFC 8707 §2: resource alone may repeat
		res := url.QueryEscape("https://mcp.example.com/files")
		want(t, k.raw("POST", "/token", body+"&resource="+res+"&resource="+res, nil), 200, "")
	})
}

func TestTK05_GrantTypes(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		code := k.code(a, nil)
		for grantType, wantCode := range map[string]string{
			"": "invalid_request", "password": "unsupported_grant_type", "implicit": "unsupported_grant_type",
			"urn:ietf:params:oauth:grant-type:jwt-bearer":     "unsupported_grant_type",
			"urn:ietf:params:oauth:grant-type:device_code":    "unsupported_grant_type",
			"urn:ietf:params:oauth:grant-type:token-exchange": "unsupported_grant_type",
			"authorization_code refresh_token":                "unsupported_grant_type",
			"Authorization_Code":                              "unsupported_grant_type",
		} {
			form := changed(codeForm(a, code), url.Values{"grant_type": {grantType}, "username": {"mina@example.com"}, "password": {"x"}})
			k.denied(400, wantCode, func() answer { return k.raw("POST", "/token", form.Encode(), nil) })
		}
		form := changed(codeForm(a, code), url.Values{"grant_type": nil})
		k.denied(400, "invalid_request", func() answer { return k.raw("POST", "/token", form.Encode(), nil) })
		want(t, k.redeem(a, code, nil), 200, "")
	})
}

func TestTK06_GrantNotRegistered(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		c, _, err := k.App.Clients.Add(k.ctx, registration.AddOptions{Name: "Atlas", RedirectURIs: []string{appRedirect},
			GrantTypes: []string{registration.GrantAuthorizationCode}})
		if err != nil {
			t.Fatal(err)
		}
		a := app{id: c.ID, method: registration.AuthNone, redirect: appRedirect}
		first := k.connect(a, nil)
		if first.body.RefreshToken != "" {
			t.Error("a client without the grant got a refresh token")
		}
		// a genuine string of that generation does not help
		token := k.minted(k.theGrant(), 1)
		k.denied(400, "unauthorized_client", func() answer { return k.refresh(a, token, nil) })
	})
}

func TestTK07_ClientCredentialsByPublicClient(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, a := range []app{k.register(loopbackRedirect), k.operatorApp(registration.AuthNone, appRedirect)} {
			got := k.denied(400, "unauthorized_client", func() answer {
				return k.post("/token", a, url.Values{"grant_type": {"client_credentials"}, "scope": {"files:read"}})
			})
			if strings.Contains(got.raw, "refresh_token") {
				t.Error("refresh token for client_credentials")
			}
		}
	})
}

func TestTK10_TK11_Headers(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		hostile := http.Header{"Origin": {"https://evil.example"}, "Cookie": {"__Host-session=stolen"}, "Sec-Fetch-Site": {"cross-site"}}
		for name, got := range map[string]answer{
			"success": k.raw("POST", "/token", codeForm(a, k.code(a, nil)).Encode(), hostile),
			"400":     k.raw("POST", "/token", "grant_type=password", hostile),
			"401":     k.raw("POST", "/token", "grant_type=refresh_token&client_id=nobody", hostile),
			"404":     k.raw("POST", "/tokens", "", hostile),
			"405":     k.raw("GET", "/token", "", hostile),
			"415":     k.raw("POST", "/token", "x", http.Header{"Content-Encoding": {"gzip"}, "Origin": {"https://evil.example"}}),
		} {
			h := got.header
			if name != "404" {
				if h.Get("Access-Control-Allow-Origin") != "*" {
					t.Errorf("%s: Access-Control-Allow-Origin = %q", name, h.Get("Access-Control-Allow-Origin"))
				}
				if ct := h.Get("Content-Type"); ct != "application/json" {
					t.Errorf("%s: Content-Type = %q", name, ct)
				}
			}
			if _, ok := h["Access-Control-Allow-Credentials"]; ok || h.Get("Set-Cookie") != "" || h.Get("Location") != "" {
				t.Errorf("%s: %v", name, h)
			}
			if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", name, h)
			}
		}
		preflight := k.raw("OPTIONS", "/token", "", http.Header{"Origin": {"https://evil.example"}, "Access-Control-Request-Method": {"POST"}})
		if preflight.status != http.StatusNoContent || preflight.header.Get("Access-Control-Allow-Origin") != "*" ||
			preflight.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("preflight: %d %v", preflight.status, preflight.header)
		}
	})
}

func TestTK14_EncodedAndOversizedBodies(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		code := k.code(a, nil)
		var bomb bytes.Buffer
		zip := gzip.NewWriter(&bomb)
		if _, err := io.CopyN(zip, zeros{}, 8<<20); err != nil || zip.Close() != nil {
			t.Fatal("cannot make the bomb")
		}
		for _, encoding := range []string{"gzip", "deflate", "br", "gzip, gzip"} {
			k.denied(415, "invalid_request", func() answer {
				return k.raw("POST", "/token", bomb.String(), http.Header{"Content-Encoding": {encoding}})
			})
		}
		k.denied(413, "invalid_request", func() answer {
			return k.raw("POST", "/token", codeForm(a, code).Encode()+"&pad="+strings.Repeat("x", 1<<20), nil)
		})
		for _, contentType := range []string{"application/json", "multipart/form-data; boundary=x", "text/plain", ""} {
			k.denied(400, "invalid_request", func() answer {
				return k.raw("POST", "/token", codeForm(a, code).Encode(), http.Header{"Content-Type": {contentType}})
			})
		}
		want(t, k.redeem(a, code, nil), 200, "")
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TK-12, our half: net/http refuses most of what proxies and servers may read
// differently, so the handler never sees it. It reads a folded header and a bare
// LF after a header as RFC 9112 §2.2 and §5.2 allow, which changes no length.
// The proxies' half is in test/proxy.
func TestTK12_AmbiguousMessages(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		code := k.code(a, nil)
		srv := httptest.NewServer(k.App.Public())
		t.Cleanup(srv.Close)
		body := codeForm(a, code).Encode()
		head := "POST /token HTTP/1.1\r\nHost: id.example.com\r\nContent-Type: " + formType + "\r\nConnection: close\r\n"
		chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		for name, message := range map[string]string{
			"TK-12 two different lengths":  head + fmt.Sprintf("Content-Length: %d\r\nContent-Length: 5\r\n\r\n%s", len(body), body),
			"TK-12 chunked and gzip":       head + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunked,
			"TK-12 chunked twice":          head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
			"TK-12 folded first line":      strings.Replace(head, "Host:", " X: y\r\nHost:", 1) + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
			"TK-12 space before the colon": head + fmt.Sprintf("Content-Length : %d\r\n\r\n%s", len(body), body),
			"TK-12 bare LF in a chunk":     head + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\n%s\n0\n\n", len(body), body),
			"TK-12 no Host":                strings.Replace(head, "Host: id.example.com\r\n", "", 1) + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
			"TK-12 two Hosts":              head + "Host: evil.example\r\n" + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		} {
			k.changesOnly(func() {
				if status := exchange(t, srv.Listener.Addr().String(), message); status < 400 || status >= 500 && status != 501 {
					t.Errorf("%s: %d, want a refusal", name, status)
				}
			})
		}
		// RFC 9112 §6.3: Transfer-Encoding wins and the connection closes, so nothing
		// that follows can be taken for a second request
		both := head[:len(head)-len("Connection: close\r\n")] + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked +
			"GET /authorize HTTP/1.1\r\nHost: id.example.com\r\n\r\n"
		if n := answersTo(t, srv.Listener.Addr().String(), both); n > 1 {
			t.Errorf("a message with both lengths got %d answers", n)
		}
	})
}

// exchange sends bytes as they are and returns the status of the first answer.
func exchange(t *testing.T, addr, message string) int {
	t.Helper()
	r := dial(t, addr, message)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return 400 // the connection was closed without an answer
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func answersTo(t *testing.T, addr, message string) (n int) {
	t.Helper()
	for r := dial(t, addr, message); ; n++ {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return n
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

func dial(t *testing.T, addr, message string) *bufio.Reader {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, message); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(conn)
}
