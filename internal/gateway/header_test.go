package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/gateway"
)

// folded is how CGI, WSGI and PHP read a header's name.
func folded(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '.' || c == ' ' {
			return '-'
		}
		return c
	}, strings.ToLower(name))
}

// Nothing arrives at the upstream that a client could have forged, and no
// credential (JW-24). The lines are written to the socket, as no library would.
func TestJW24_RequestHeaders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, lines string
		gone        []string // folded names that must not arrive
		status      int      // 0: 200
	}{
		{name: "Authorization", gone: []string{"authorization"}},
		{name: "other credentials", lines: "Proxy-Authorization: Basic eA==\r\nCookie: a=b\r\nDPoP: x\r\n",
			gone: []string{"proxy-authorization", "cookie", "dpop"}},
		{name: "Authorization in another spelling", lines: "Proxy_Authorization: x\r\nAuthorization_: x\r\n",
			gone: []string{"proxy-authorization", "authorization-"}},
		{name: "where it came from", lines: "Forwarded: for=1.2.3.4\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: evil\r\nX_Forwarded_Proto: https\r\n" +
			"X-Forwarded-Anything: x\r\nX-Real-IP: 1.2.3.4\r\nX-Real_Ip: 1.2.3.4\r\nVia: 1.1 x\r\n",
			gone: []string{"forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-anything", "x-real-ip", "via"}},
		{name: "who calls, by other proxies", lines: "Remote-User: admin\r\nX-Remote-User: admin\r\nX-WebAuth-User: admin\r\nX-Forwarded: x\r\n" +
			"X-Original-Uri: /admin\r\nX-Client-Cert: x\r\nCf-Access-Jwt-Assertion: x\r\nX-Goog-Iap-Jwt-Assertion: x\r\nX-Amzn-Oidc-Identity: x\r\n" +
			"X-Ms-Client-Principal: x\r\nTailscale-User-Login: admin\r\nX-Auth-Token: x\r\nX_Remote_User: admin\r\n",
			gone: []string{"remote-user", "x-remote-user", "x-webauth-user", "x-forwarded", "x-original-uri", "x-client-cert", "cf-access-jwt-assertion",
				"x-goog-iap-jwt-assertion", "x-amzn-oidc-identity", "x-ms-client-principal", "tailscale-user-login", "x-auth-token"}},
		{name: "another request", lines: "X-HTTP-Method-Override: DELETE\r\nX-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\nProxy: http://evil\r\n",
			gone: []string{"x-http-method-override", "x-original-url", "x-rewrite-url", "proxy"}},
		{name: "X-Ostiary-Subject", lines: "X-Ostiary-Subject: admin\r\nx-ostiary-identity: forged\r\nX-OSTIARY-SCOPE: all\r\n",
			gone: []string{"x-ostiary-subject", "x-ostiary-scope"}},
		{name: "X_Ostiary_Subject", lines: "X_Ostiary_Subject: admin\r\nX-Ostiary_Client_Id: x\r\nX.Ostiary.Subject: admin\r\nX_OSTIARY_IDENTITY: forged\r\n",
			gone: []string{"x-ostiary-subject", "x-ostiary-client-id"}},
		{name: "Connection: X-Ostiary-Subject", lines: "Connection: X-Ostiary-Subject, X-Ostiary-Identity, X_Ostiary_Scope\r\nX-Ostiary-Subject: admin\r\n",
			gone: []string{"x-ostiary-subject", "connection"}},
		{name: "Connection names what it likes", lines: "Connection: keep-alive, X-Custom\r\nX-Custom: 1\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\n",
			gone: []string{"x-custom", "keep-alive", "connection", "proxy-connection"}},
		{name: "Te", lines: "Te: trailers\r\n", gone: []string{"te"}},
		{name: "Upgrade", lines: "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n", gone: []string{"upgrade", "connection"}},
		{name: "h2c", lines: "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
			gone: []string{"upgrade", "connection", "http2-settings"}},
		{name: "Expect", lines: "Expect: 100-continue\r\n", gone: []string{"expect"}},
		{name: "Expect something else", lines: "Expect: the-unexpected\r\n", status: http.StatusExpectationFailed},
		{name: "a browser's page", lines: "Origin: https://app.example\r\nReferer: https://app.example/\r\nSec-Fetch-Site: cross-site\r\n",
			gone: []string{"origin", "referer", "sec-fetch-site"}},
		{name: "transport headers in another spelling", lines: "Mcp_Session_Id: s1\r\nMcp_Method: tools/call\r\nMcp.Name: x\r\n",
			gone: []string{"mcp-session-id", "mcp-method", "mcp-name"}},
		{name: "space before the colon", lines: "X-Ostiary-Subject : admin\r\n", status: http.StatusBadRequest},
		{name: "folded line", lines: "X-A: b\r\n X-Ostiary-Subject: admin\r\n", gone: []string{"x-ostiary-subject"}},
		{name: "bare CR", lines: "X-A: b\rX-Ostiary-Subject: admin\r\n", status: http.StatusBadRequest},
		{name: "NUL", lines: "X-A: b\x00\r\n", status: http.StatusBadRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			request := fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\n\r\n%s",
				f.token(t), tt.lines, len(call), call)
			statuses := f.raw(t, request)
			if tt.status != 0 {
				if len(statuses) != 1 || statuses[0] != tt.status || len(f.requests()) > 0 {
					t.Errorf("statuses %v, %d requests arrived; want %d and none", statuses, len(f.requests()), tt.status)
				}
				return
			}
			if !slices.Contains(statuses, http.StatusOK) {
				t.Fatalf("statuses %v, want 200", statuses)
			}
			got := f.only(t)
			identities := 0
			for name, values := range got.Header {
				if slices.Contains(tt.gone, folded(name)) {
					t.Errorf("%s: %q arrived", name, values)
				}
				if folded(name) == "x-ostiary-identity" {
					identities += len(values)
				} else if strings.HasPrefix(folded(name), "x-ostiary-") {
					t.Errorf("%s: %q arrived", name, values)
				}
			}
			if identities != 1 || strings.Contains(got.Header.Get("X-Ostiary-Identity"), "forged") {
				t.Errorf("%d identities, want the gateway's alone", identities)
			}
			if got.body != call {
				t.Errorf("body = %q", got.body)
			}
		})
	}
}

// The operator names what another proxy wrote.
func TestRemoveHeaders(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(_ *fixture, o *gateway.Options) { o.RemoveHeaders = []string{"x-our-sso-user"} })
	f.do(t, http.MethodPost, "/mcp", call, "Authorization", "Bearer "+f.token(t), "X-Our-Sso-User", "admin", "X-Our-Team", "a")
	got := f.only(t).Header
	if got.Get("X-Our-Sso-User") != "" || got.Get("X-Our-Team") != "a" {
		t.Errorf("headers = %v; want X-Our-Team and not X-Our-Sso-User", got)
	}
}

// JW-24: the token is never handed on in the query either, however its name is spelt.
func TestJW24_QueryToken(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ query, want string }{
		{"access_token=x", ""}, {"%61ccess_token=x", ""}, {"a=1&access_token=x&b=2", "a=1&b=2"}, {"b=2&a=%31", "b=2&a=%31"}, {"a=%zz", ""},
	} {
		f := newFixture(t)
		f.do(t, http.MethodPost, "/mcp?"+tt.query, call, "Authorization", "Bearer "+f.token(t))
		if got := f.only(t).URL.RawQuery; got != tt.want {
			t.Errorf("%s: %q arrived, want %q", tt.query, got, tt.want)
		}
	}
}

// Trailers come after the identity was written, and could overwrite it in a
// server that merges them.
func TestJW24_RequestTrailers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var trailer http.Header
	f.answers(func(_ http.ResponseWriter, r *http.Request) { trailer = r.Trailer })
	request := fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nTe: trailers\r\nTrailer: X-Ostiary-Subject\r\n"+
		"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nX-Ostiary-Subject: admin\r\nX-Ostiary-Identity: forged\r\n\r\n", f.token(t), len(call), call)
	if got := f.raw(t, request); len(got) != 1 || got[0] != http.StatusOK {
		t.Fatalf("statuses %v", got)
	}
	if got := f.only(t); len(trailer) > 0 || got.Header["Trailer"] != nil || got.Header["X-Ostiary-Subject"] != nil || got.TransferEncoding != nil {
		t.Errorf("trailers %v, header %v, encoding %v", trailer, got.Header, got.TransferEncoding)
	}
}

// A second request inside the first one's body never becomes one of its own,
// whichever way the two lengths are told.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	const inner = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Smuggled: 1\r\nContent-Length: 0\r\n\r\n"
	for _, tt := range []struct{ name, lines, body string }{
		{"CL.TE", "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + inner},
		{"TE.CL", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(inner), inner)},
		{"CL.CL", "Content-Length: 0\r\nContent-Length: 94\r\n", inner},
		{"CL list", "Content-Length: 0, 94\r\n", inner},
		{"CL +", "Content-Length: +0\r\n", inner},
		{"TE twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n" + inner},
		{"TE x", "Transfer-Encoding: xchunked\r\n", "0\r\n\r\n" + inner},
		{"TE list", "Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n" + inner},
		{"TE tab", "Transfer-Encoding:\tchunked\r\nContent-Length: 3\r\n", "0\r\n\r\n" + inner},
		{"TE space before colon", "Transfer-Encoding : chunked\r\nContent-Length: 94\r\n", "0\r\n\r\n" + inner},
		{"TE with underscore", "Transfer_Encoding: chunked\r\nContent-Length: 0\r\n", inner},
		{"bare LF in chunk size", "Transfer-Encoding: chunked\r\n", "2;\nxx\r\n0\r\n\r\n" + inner},
		{"large chunk size", "Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n" + inner},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			request := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + f.token(t) + "\r\n" + tt.lines + "\r\n" + tt.body
			statuses := f.raw(t, request)
			// What comes behind the first request is one without a token.
			if len(statuses) == 0 || len(statuses) > 2 || len(statuses) == 2 && statuses[1] != http.StatusUnauthorized && statuses[1] != http.StatusBadRequest {
				t.Errorf("statuses %v", statuses)
			}
			if n := len(f.requests()); (statuses[0] == http.StatusOK) != (n == 1) {
				t.Errorf("statuses %v, %d requests arrived", statuses, n)
			}
			for _, r := range f.requests() {
				if r.Header.Get("X-Smuggled") != "" || r.URL.Path != "/inner" || r.TransferEncoding != nil {
					t.Errorf("upstream got %s %v %v", r.URL, r.Header, r.TransferEncoding)
				}
			}
		})
	}
}

// What of an answer is the upstream's own business, and what is this door's.
func TestResponseHeaders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.answers(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for _, name := range []string{"Set-Cookie", "Www-Authenticate", "Proxy-Authenticate", "X-Ostiary-Identity", "X_ostiary_subject",
			"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Alt-Svc", "Trailer", "Refresh"} {
			h[name] = []string{"upstream"}
		}
		h.Set("Link", "</early>")
		w.WriteHeader(http.StatusEarlyHints)
		h.Set("Cache-Control", "no-cache")
		h.Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "{}")
		h.Set(http.TrailerPrefix+"X-Ostiary-Subject", "upstream")
		h.Set(http.TrailerPrefix+"Set-Cookie", "upstream")
	})
	res := f.post(t, call, "Origin", "https://app.example")
	if body := text(t, res); res.StatusCode != http.StatusForbidden || body != "{}" {
		t.Errorf("answer = %d %q: a refusal of the upstream's own goes through", res.StatusCode, body)
	}
	for name, values := range res.Header {
		if slices.Contains(values, "upstream") {
			t.Errorf("%s is the upstream's", name)
		}
	}
	if len(res.Trailer) > 0 {
		t.Errorf("trailers %v", res.Trailer)
	}
	if got := res.Header.Values("Access-Control-Allow-Origin"); !slices.Equal(got, []string{"*"}) {
		t.Errorf("Access-Control-Allow-Origin = %q", got)
	}
	if got := res.Header.Get("Access-Control-Expose-Headers"); !strings.Contains(got, "WWW-Authenticate") {
		t.Errorf("M2: Access-Control-Expose-Headers = %q", got)
	}
	if res.Header.Get("Cache-Control") != "no-cache" || res.Header.Get("Link") != "</early>" {
		t.Errorf("header = %v: what is harmless is kept", res.Header)
	}
}
