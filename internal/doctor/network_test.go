package doctor

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// twoAddresses is a DNS in which a name has one address that answers and one that
// does not.
type twoAddresses struct{}

func (twoAddresses) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}, nil
}

func examinationOf(t *testing.T, o Options) *examination {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	return newExamination(o)
}

// An address that does not answer is found although another one does.
func TestDeadAddress(t *testing.T) {
	t.Parallel()
	u, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	port := u[strings.LastIndex(u, ":"):]
	x := examinationOf(t, Options{URL: "http://two.example" + port + "/mcp", Resolver: twoAddresses{}})
	if out := serverPlace.dns(t.Context(), x); out.State != OK {
		t.Errorf("dns: %+v", out)
	}
	if out := serverPlace.connect(t.Context(), x); out.State != Warn || !strings.Contains(out.Why, "127.0.0.2") {
		t.Errorf("connect: %+v", out)
	}
	if out := serverPlace.https(t.Context(), x); out.State != Broken {
		t.Errorf("https: %+v", out)
	}
}

func TestSlowAnswer(t *testing.T) {
	t.Parallel()
	u, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	x := examinationOf(t, Options{URL: u})
	if out := serverPlace.speed(t.Context(), x); out.State != OK {
		t.Errorf("speed: %+v", out)
	}
	x.unauthorizedGet(t.Context()).took = slowAnswer + 1
	if out := serverPlace.speed(t.Context(), x); out.State != Warn {
		t.Errorf("speed: %+v", out)
	}
}

// Certificates are judged by what every client would say.
func TestSelfSigned(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	x := examinationOf(t, Options{URL: server.URL})
	if out := serverPlace.tls(t.Context(), x); out.State != Broken || !strings.Contains(out.Why, "self-signed") {
		t.Errorf("tls: %+v", out)
	}
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	t.Cleanup(old.Close)
	x = examinationOf(t, Options{URL: old.URL})
	if out := serverPlace.tls(t.Context(), x); out.State != Broken || !strings.Contains(out.Why, "handshake fails") {
		t.Errorf("tls: %+v", out)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	x = examinationOf(t, Options{URL: strings.Replace(plain.URL, "http:", "https:", 1)})
	if out := serverPlace.tls(t.Context(), x); out.State != Broken || !strings.Contains(out.Why, "speaks no TLS") {
		t.Errorf("tls: %+v", out)
	}
}

// A firewall is told from a server that refuses, and a CDN's marks alone mean
// nothing.
func TestFirewall(t *testing.T) {
	t.Parallel()
	type header = map[string]string
	for _, tt := range []struct {
		name   string
		status int
		header header
		body   string
		want   string
	}{
		{"Cloudflare's challenge", 403, header{"Cf-Mitigated": "challenge", "Content-Type": "text/html"}, "<html>", "Cloudflare's challenge"},
		{"Cloudflare's challenge with 200", 200, header{"Cf-Mitigated": "challenge", "Content-Type": "text/html"}, "<html>", "Cloudflare's challenge"},
		{"AWS WAF", 403, header{"X-Amzn-Waf-Action": "captcha"}, "", "AWS WAF"},
		{"Imperva with 200", 200, header{"Content-Type": "text/html"}, `<html><script src="/_Incapsula_Resource?x">`, "Imperva"},
		{"F5", 200, header{"Content-Type": "text/html"}, "<html>The requested URL was rejected. Please consult with your administrator", "F5"},
		{"Akamai", 403, header{"Server": "AkamaiGHost"}, "Access Denied", "Akamai"},
		{"a page with 429", 429, header{"Content-Type": "text/html"}, "<html>", "a proxy or firewall in front"},
		{"a server behind Cloudflare", 401, header{"Cf-Ray": "8f0", "Content-Type": "application/json"}, `{"error":"invalid_token"}`, ""},
		{"a refusal behind Cloudflare", 403, header{"Cf-Ray": "8f0", "Content-Type": "application/json"}, `{"error":"insufficient_scope"}`, ""},
		{"a page of the server's own", 200, header{"Content-Type": "text/html"}, "<html>Welcome", ""},
		{"a page behind Cloudflare", 200, header{"Cf-Ray": "8f0", "Content-Type": "text/html"}, "<html>Welcome", ""},
		{"a 404 page", 404, header{"Content-Type": "text/html"}, "<html>", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &exchange{status: tt.status, header: http.Header{}, body: []byte(tt.body)}
			for name, v := range tt.header {
				e.header.Set(name, v)
			}
			if got, found := firewall(e); got != tt.want || found != (tt.want != "") {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// What a page may read and send is judged as a browser does.
func TestForbids(t *testing.T) {
	t.Parallel()
	type header = map[string]string
	for _, tt := range []struct {
		name   string
		status int
		header header
		want   string
	}{
		{"everything", 204, header{"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "Authorization, content-type", "Access-Control-Allow-Methods": "DELETE"}, ""},
		{"the origin by name", 200, header{"Access-Control-Allow-Origin": browserOrigin, "Access-Control-Allow-Headers": "authorization,content-type", "Access-Control-Allow-Methods": "*"}, ""},
		{"the wildcard and Authorization", 204, header{"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*", "Access-Control-Allow-Methods": "*"}, "does not allow the header authorization"},
		{"another origin", 204, header{"Access-Control-Allow-Origin": "https://other.example"}, "Access-Control-Allow-Origin is https://other.example"},
		{"no origin", 204, nil, "no Access-Control-Allow-Origin"},
		{"no method", 204, header{"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "authorization,content-type"}, "does not allow DELETE"},
		{"refused", 401, header{"Access-Control-Allow-Origin": "*"}, "answered with 401"},
		{"redirected", 302, header{"Access-Control-Allow-Origin": "*"}, "answered with 302"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &exchange{query: preflight(browserOrigin, "https://a.example", http.MethodDelete), status: tt.status, header: http.Header{}}
			for name, v := range tt.header {
				e.header.Set(name, v)
			}
			if got := forbidsRequest(e, http.MethodDelete, "Authorization", "Content-Type"); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// Places are those of RFC 9728 §3.1 and RFC 8414 §3.1, in MCP's order.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://a.example":         "https://a.example/.well-known/oauth-protected-resource",
		"https://a.example/":        "https://a.example/.well-known/oauth-protected-resource",
		"https://a.example/mcp":     "https://a.example/.well-known/oauth-protected-resource/mcp https://a.example/.well-known/oauth-protected-resource",
		"https://a.example/a%2Fb/":  "https://a.example/.well-known/oauth-protected-resource/a%2Fb/ https://a.example/.well-known/oauth-protected-resource",
		"https://a.example:8443/?x": "https://a.example:8443/.well-known/oauth-protected-resource?x https://a.example:8443/.well-known/oauth-protected-resource",
	} {
		u, err := parseTarget(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := urls(resourceMetadataURLs(u)); got != want {
			t.Errorf("%s: %s", raw, got)
		}
	}
	for issuer, want := range map[string]string{
		"https://a.example":    "https://a.example/.well-known/oauth-authorization-server https://a.example/.well-known/openid-configuration",
		"https://a.example/t/": "https://a.example/.well-known/oauth-authorization-server/t https://a.example/.well-known/openid-configuration/t https://a.example/t/.well-known/openid-configuration",
	} {
		if got := urls(issuerForms(issuer)); got != want {
			t.Errorf("%s: %s", issuer, got)
		}
	}
}

func urls(forms []form) string {
	var list []string
	for _, f := range forms {
		list = append(list, f.url)
	}
	return strings.Join(list, " ")
}

func TestLoopbackHosts(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{"localhost": true, "LOCALHOST": true, "Mcp.LocalHost": true, "127.0.0.1": true, "::1": true,
		"localhost.example": false, "10.0.0.1": false, "": false} {
		if isLoopbackHost(host) != want {
			t.Errorf("%q: %t", host, !want)
		}
	}
}
