package doctor

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/doctor"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// page is nginx's answer with a web page.
const page = `default_type text/html; return 200 "<!doctype html><title>App</title>";`

// rewrite replaces text in what is proxied.
func rewrite(from, to string) string { return "sub_filter '" + from + "' '" + to + "';" }

// fault is one thing broken, the finding that names it, and what follows from it.
type fault struct {
	name string
	nginx
	change func(*setup, *doctor.Options)
	// options changes Ostiary itself, of which the fault then has its own.
	options func(*config.Config)
	id      string
	state   doctor.State
	also    []string
	// fix is in the advice.
	fix string
}

func changeURL(u string) func(*setup, *doctor.Options) {
	return func(_ *setup, o *doctor.Options) { o.URL = u }
}

// forged gives a token that nobody signed.
func forged(claims string) func(*setup, *doctor.Options) {
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"alg":"ES256","typ":"at+jwt"}`)) + "." +
		encode([]byte(`{"aud":"`+testkit.Resource+`",`+claims+`}`)) + "." + encode(make([]byte, 64))
	return func(_ *setup, o *doctor.Options) { o.Token = oauth.Secret(token) }
}

func write(s *setup, o *doctor.Options) { s.logIn(o) }

var faults = []fault{
	{name: "no DNS", change: changeURL("https://nowhere.example.com/files"), id: "server-dns", state: doctor.Broken},
	{name: "closed port", id: "server-connect", state: doctor.Broken,
		change: func(_ *setup, o *doctor.Options) { o.ConnectTo[serverHost+":443"] = "127.0.0.1:1" }},
	{name: "http", change: changeURL("http://mcp.example.com/files"), id: "server-https", state: doctor.Broken},
	{name: "expired certificate", nginx: nginx{certificate: expire}, id: "server-tls", state: doctor.Broken},
	{name: "certificate of another name", id: "server-tls", state: doctor.Broken,
		nginx: nginx{certificate: func(c *x509.Certificate) { c.DNSNames = []string{"www.example.com"} }}},
	{name: "missing intermediate", nginx: nginx{withoutIntermediate: true}, id: "server-tls", state: doctor.Broken},
	{name: "certificate expires soon", id: "server-tls-expiry", state: doctor.Warn,
		nginx: nginx{certificate: func(c *x509.Certificate) { c.NotAfter = time.Now().Add(5 * 24 * time.Hour) }}},
	{name: "the connection is closed", id: "server-answer", state: doctor.Broken, nginx: nginx{server: `location ~ "^/(files|[.])" { return 444; }`}},
	{name: "only GET is answered", id: "server-answer", state: doctor.Broken, nginx: nginx{server: `if ($request_method = POST) { return 444; }`}},
	{name: "the issuer closes the connection", id: "issuer-answer", state: doctor.Broken, nginx: nginx{issuer: `if ($uri) { return 444; }`}},
	{name: "firewall", id: "server-waf", state: doctor.Broken,
		nginx: nginx{server: `location = /files { add_header CF-Ray 8f0 always; add_header CF-Mitigated challenge always; default_type text/html; return 403 "<html>Just a moment...</html>"; }`}},
	{name: "firewall before the issuer", id: "issuer-waf", state: doctor.Broken,
		nginx: nginx{issuer: `location /.well-known/ { default_type text/html; return 403 "<html>Attention Required</html>"; }`}},
	{name: "firewall's challenge with 503", id: "server-waf", state: doctor.Broken, fix: "bot protection",
		nginx: nginx{server: `location = /files { default_type text/html; return 503 "<html>Enable JavaScript and cookies to continue</html>"; }`}},
	{name: "rate limit", id: "metadata-status", state: doctor.Broken, fix: "rate limit", also: []string{"issuer-user-agents"},
		nginx: nginx{http: `limit_req_zone $server_name zone=z:1m rate=1r/m;`, issuer: `limit_req zone=z burst=2 nodelay; limit_req_status 429;`}},
	{name: "rate limit while names are tried", id: "issuer-user-agents", state: doctor.Warn, fix: "rate limit", also: []string{"metadata-status"},
		nginx: nginx{http: `limit_req_zone $server_name zone=z:1m rate=1r/m;`, issuer: `limit_req zone=z burst=2 nodelay;`}}, // 503, as nginx does
	{name: "rate limit from the first request on", id: "issuer-waf", state: doctor.Broken, fix: "rate limit",
		nginx: nginx{issuer: `location /.well-known/ { return 429; }`}},
	{name: "bots get 429", id: "server-user-agents", state: doctor.Broken, fix: "this User-Agent",
		nginx: nginx{server: `if ($http_user_agent ~* "python|Go-http") { return 429; }`}},
	{name: "bots are blocked", id: "server-user-agents", state: doctor.Broken,
		nginx: nginx{server: `if ($http_user_agent ~* "python|Go-http") { return 403; }`}},
	{name: "clock", id: "server-clock", state: doctor.Broken,
		nginx: nginx{serverProxy: `proxy_pass_header Date; proxy_set_header X-Clock "Sat, 21 Nov 2026 03:00:00 GMT";`}},

	{name: "redirect to a slash", id: "server-redirect", state: doctor.Broken, nginx: nginx{server: `location = /files { return 301 https://$host/files/; }`}},
	{name: "single sign-on in front", id: "server-redirect", state: doctor.Broken, fix: "single sign-on",
		nginx: nginx{server: `location = /files { return 302 https://sso.example.com/login?rd=$request_uri; }`}},
	{name: "single sign-on on the host itself", id: "server-redirect", state: doctor.Broken, fix: "single sign-on", also: []string{"resource-status", "metadata-legacy"},
		nginx: nginx{server: `location ~ "^/(files|[.]well-known)" { return 302 /oauth2/sign_in?rd=$request_uri; }`}},
	{name: "another host", id: "challenge-status", state: doctor.Broken, fix: "proxy_set_header Host $host", nginx: nginx{server: `location = /files { return 421; }`}},
	{name: "403 for 401", id: "challenge-status", state: doctor.Broken,
		nginx: nginx{serverProxy: `proxy_intercept_errors on; error_page 401 =403 /denied;`, server: `location = /denied { default_type application/json; return 403 "{}"; }`}},
	{name: "a website", id: "challenge-status", state: doctor.Broken, fix: "URL of the MCP endpoint", nginx: nginx{server: `location = /files { ` + page + ` }`}},
	{name: "wrong path", id: "challenge-status", state: doctor.Broken, fix: "URL of the MCP endpoint", nginx: nginx{server: `location = /files { default_type application/json; return 404 "{}"; }`}},
	{name: "backend down", id: "challenge-status", state: doctor.Broken, fix: "does not reach", nginx: nginx{server: `location = /files { proxy_pass http://127.0.0.1:1; }`}},
	{name: "not protected", id: "challenge-status", state: doctor.Broken,
		nginx: nginx{server: `location = /files { default_type application/json; return 200 "{}"; }`}},
	{name: "challenge dropped", id: "challenge-header", state: doctor.Broken, nginx: nginx{serverProxy: `proxy_hide_header WWW-Authenticate;`}},
	{name: "Basic comes first", id: "challenge-first", state: doctor.Broken,
		nginx: nginx{serverProxy: `proxy_hide_header WWW-Authenticate; add_header WWW-Authenticate 'Basic realm="internal"' always; add_header WWW-Authenticate 'Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/files", scope="files:read"$invalid' always;`}},
	{name: "challenge without quotes", id: "challenge-syntax", state: doctor.Broken,
		nginx: nginx{serverProxy: `proxy_hide_header WWW-Authenticate; add_header WWW-Authenticate 'Bearer resource_metadata=https://mcp.example.com/.well-known/oauth-protected-resource/files' always;`}},
	{name: "challenge without metadata", id: "challenge-resource", state: doctor.Warn,
		nginx: nginx{serverProxy: `proxy_hide_header WWW-Authenticate; add_header WWW-Authenticate 'Bearer realm="files"$invalid' always;`}},
	{name: "challenge with http", id: "challenge-origin", state: doctor.Broken,
		nginx: nginx{serverProxy: `proxy_hide_header WWW-Authenticate; add_header WWW-Authenticate 'Bearer resource_metadata="http://mcp.example.com/.well-known/oauth-protected-resource/files"$invalid' always;`}},
	{name: "challenge accuses", id: "challenge-error", state: doctor.Warn,
		nginx: nginx{serverProxy: `proxy_hide_header WWW-Authenticate; add_header WWW-Authenticate 'Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/files", error="invalid_token"' always;`}},
	{name: "GET is refused", id: "challenge-get", state: doctor.Broken, nginx: nginx{server: `set $asked "$request_method$uri"; if ($asked = GET/files) { return 405; }`}},
	{name: "Authorization dropped", id: "token-refused", state: doctor.Broken, nginx: nginx{serverProxy: `proxy_set_header Authorization "";`}},
	{name: "Authorization dropped, with a token", id: "access-accepted", state: doctor.Broken, nginx: nginx{serverProxy: `proxy_set_header Authorization "";`},
		change: write, also: []string{"token-refused"}},

	{name: "metadata behind authentication", id: "resource-public", state: doctor.Broken, nginx: nginx{server: `location /.well-known/oauth-protected-resource { return 403; }`}},
	{name: "only the path's metadata behind authentication", id: "resource-public", state: doctor.Broken,
		nginx: nginx{server: `location = /.well-known/oauth-protected-resource/files { return 401; }`}},
	// the root place is behind authentication here, as all that the MCP server does not know
	{name: "path's metadata not routed", id: "resource-served", state: doctor.Broken, nginx: nginx{server: `location = /.well-known/oauth-protected-resource/files { return 404; }`}},
	{name: "path's metadata not routed, nor named", id: "resource-served", state: doctor.Broken, also: []string{"challenge-resource"},
		nginx: nginx{serverProxy: `proxy_hide_header WWW-Authenticate; add_header WWW-Authenticate 'Bearer realm="files"$invalid' always;`,
			server: `location = /.well-known/oauth-protected-resource/files { return 404; }`}},
	{name: "path's metadata has no backend", id: "resource-status", state: doctor.Broken, fix: "does not reach",
		nginx: nginx{server: `location = /.well-known/oauth-protected-resource/files { proxy_pass http://127.0.0.1:1; }`}},
	{name: "path's metadata redirected", id: "resource-status", state: doctor.Broken, fix: "never redirect",
		nginx: nginx{server: `location = /.well-known/oauth-protected-resource/files { return 301 https://$host/x; }`}},
	{name: "path's metadata behind single sign-on", id: "resource-status", state: doctor.Broken, fix: "single sign-on",
		nginx: nginx{server: `location = /.well-known/oauth-protected-resource/files { return 302 https://sso.example.com/login; }`}},
	{name: "metadata fails", id: "resource-status", state: doctor.Broken, nginx: nginx{server: `location /.well-known/oauth-protected-resource { return 503; }`}},
	{name: "metadata is an app", id: "resource-format", state: doctor.Broken, nginx: nginx{server: `location /.well-known/oauth-protected-resource { ` + page + ` }`}},
	{name: "metadata not routed", id: "resource-served", state: doctor.Broken, nginx: nginx{server: `location /.well-known/oauth-protected-resource { return 404; }`}},
	{name: "metadata elsewhere", id: "resource-named", state: doctor.Broken,
		nginx: nginx{serverProxy: `proxy_hide_header WWW-Authenticate; add_header WWW-Authenticate 'Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"$invalid' always;`}},
	{name: "resource with a slash", id: "resource-identity", state: doctor.Broken, nginx: nginx{serverProxy: rewrite(`/files"`, `/files/"`)}},
	{name: "resource with the backend's name", id: "resource-identity", state: doctor.Broken, fix: "proxy_set_header Host $host",
		nginx: nginx{serverProxy: rewrite(`https://mcp.example.com/files"`, `http://127.0.0.1:8080/files"`) +
			`proxy_hide_header WWW-Authenticate; add_header WWW-Authenticate 'Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/files"$invalid' always;`}},
	{name: "challenge with the backend's name", id: "challenge-origin", state: doctor.Broken, fix: "proxy_set_header Host $host",
		nginx: nginx{serverProxy: `proxy_hide_header WWW-Authenticate; add_header WWW-Authenticate 'Bearer resource_metadata="http://127.0.0.1:8080/.well-known/oauth-protected-resource/files"$invalid' always;`}},
	{name: "resource with http", id: "resource-identity", state: doctor.Broken, nginx: nginx{serverProxy: rewrite(`https://mcp.example.com/files"`, `http://mcp.example.com/files"`)}},
	{name: "root form of a path", id: "resource-root", state: doctor.Warn,
		nginx: nginx{server: `location = /.well-known/oauth-protected-resource { default_type application/json; add_header Access-Control-Allow-Origin *; add_header Access-Control-Allow-Headers MCP-Protocol-Version; return 200 '{"resource":"https://mcp.example.com/files","authorization_servers":["https://id.example.com"]}'; }`}},
	{name: "no authorization server", id: "resource-issuers", state: doctor.Broken, nginx: nginx{serverProxy: rewrite(`"https://id.example.com"`, ``)}},
	{name: "offline_access at the resource", id: "resource-scopes", state: doctor.Warn, nginx: nginx{serverProxy: rewrite(`"files:read"`, `"files:read","offline_access"`)}},

	{name: "issuer with a slash", id: "metadata-issuer", state: doctor.Broken, nginx: nginx{serverProxy: rewrite(`"https://id.example.com"`, `"https://id.example.com/"`)},
		also: []string{"issuer-spelling"}},
	{name: "issuer with the default port", id: "issuer-spelling", state: doctor.Warn,
		nginx: nginx{serverProxy: rewrite(`"https://id.example.com"`, `"https://id.example.com:443"`)}, also: []string{"metadata-issuer"}},
	{name: "issuer inside", id: "issuer-dns", state: doctor.Broken, nginx: nginx{serverProxy: rewrite(`"https://id.example.com"`, `"https://inside.example.com"`)}},
	{name: "issuer is no URL", id: "issuer-known", state: doctor.Broken, nginx: nginx{serverProxy: rewrite(`"https://id.example.com"`, `"id.example.com"`)}},
	{name: "issuer's metadata redirected", id: "metadata-status", state: doctor.Broken, nginx: nginx{issuer: `location /.well-known/ { return 301 https://www.example.com$request_uri; }`}},
	{name: "issuer's metadata is an app", id: "metadata-format", state: doctor.Broken, nginx: nginx{issuer: `location /.well-known/ { ` + page + ` }`},
		also: []string{"metadata-unknown"}},
	{name: "issuer's metadata not routed", id: "metadata-served", state: doctor.Broken, nginx: nginx{issuer: `location /.well-known/ { return 404; }`}},
	{name: "issuer behind another Host", id: "metadata-served", state: doctor.Broken, fix: "proxy_set_header Host $host", nginx: nginx{issuer: `location ~ ^/ { PROXY WITHOUT HOST; }`}},
	{name: "issuer with the backend's name", id: "metadata-issuer", state: doctor.Broken, fix: "proxy_set_header Host $host",
		nginx: nginx{issuerProxy: rewrite(`"issuer":"https://id.example.com"`, `"issuer":"http://127.0.0.1:8080"`)}},
	{name: "issuer down", id: "metadata-status", state: doctor.Broken, fix: "does not reach", nginx: nginx{issuer: `location ~ ^/ { proxy_pass http://127.0.0.1:1; }`}},
	{name: "issuer with http", id: "metadata-issuer", state: doctor.Broken, nginx: nginx{issuerProxy: rewrite(`"issuer":"https:`, `"issuer":"http:`)}},
	{name: "forms disagree", id: "metadata-agree", state: doctor.Broken,
		nginx: nginx{issuer: `location = /.well-known/openid-configuration { PROXY; sub_filter /token /v2/token; }`}},
	{name: "a null member", id: "metadata-types", state: doctor.Broken, nginx: nginx{issuerProxy: rewrite(`{"issuer"`, `{"service_documentation":null,"issuer"`)}},
	{name: "no token endpoint", id: "metadata-endpoints", state: doctor.Broken, nginx: nginx{issuerProxy: rewrite(`"token_endpoint":`, `"tokenendpoint":`)},
		also: []string{"metadata-legacy"}},
	{name: "endpoints with http", id: "metadata-urls", state: doctor.Broken, nginx: nginx{issuerProxy: rewrite(`_endpoint":"https:`, `_endpoint":"http:`)}},
	{name: "MM-12 keys inside", id: "metadata-urls", state: doctor.Broken,
		nginx: nginx{issuerProxy: rewrite(`"jwks_uri":"https://id.example.com`, `"jwks_uri":"https://inside.example.com`)}},
	{name: "MM-11 endpoint is a script", id: "metadata-urls", state: doctor.Broken,
		nginx: nginx{issuerProxy: rewrite(`"authorization_endpoint":"https:`, `"authorization_endpoint":"javascript:`)}},
	{name: "MM-14 no PKCE", id: "metadata-pkce", state: doctor.Broken, nginx: nginx{issuerProxy: rewrite(`"code_challenge_methods_supported":["S256"],`, ``)}},
	{name: "PKCE without S256", id: "metadata-pkce", state: doctor.Broken, nginx: nginx{issuerProxy: rewrite(`"code_challenge_methods_supported":["S256"]`, `"code_challenge_methods_supported":["plain"]`)}},
	{name: "no public clients", id: "metadata-public-clients", state: doctor.Broken, nginx: nginx{issuerProxy: rewrite(`"none"`, `"tls_client_auth"`)},
		also: []string{"cimd-advertised"}},
	{name: "no grant list", id: "metadata-grants", state: doctor.Warn, nginx: nginx{issuerProxy: rewrite(`"grant_types_supported":`, `"grants":`)}},
	{name: "iss not promised", id: "metadata-iss", state: doctor.Warn, nginx: nginx{issuerProxy: rewrite(`"authorization_response_iss_parameter_supported":true,`, ``)}},
	{name: "iss not promised but sent", id: "login-iss", state: doctor.Broken, nginx: nginx{issuerProxy: rewrite(`"authorization_response_iss_parameter_supported":true,`, ``)},
		change: write, also: []string{"metadata-iss"}},
	{name: "no scopes", id: "metadata-scopes", state: doctor.Warn, nginx: nginx{issuerProxy: rewrite(`"scopes_supported":`, `"scopes":`)}},
	{name: "OpenID stub", id: "metadata-openid", state: doctor.Broken, nginx: nginx{issuerProxy: rewrite(`"subject_types_supported"`, `"subjects"`)}},
	{name: "unknown places are an app", id: "metadata-unknown", state: doctor.Warn, nginx: nginx{issuer: `location /.well-known/ostiary-doctor-nothing { ` + page + ` }`}},
	{name: "no legacy metadata", id: "metadata-legacy", state: doctor.Warn, nginx: nginx{server: `location /.well-known/oauth-authorization-server { return 404; }`}},

	{name: "OPTIONS is refused", id: "browser-server", state: doctor.Broken, nginx: nginx{server: `if ($request_method = OPTIONS) { set $refuse "$uri"; } if ($refuse = /files) { return 405; }`}},
	{name: "challenge hidden from pages", id: "browser-challenge", state: doctor.Broken, nginx: nginx{serverProxy: `proxy_hide_header Access-Control-Expose-Headers;`}},
	{name: "CORS twice", id: "browser-resource", state: doctor.Broken,
		nginx: nginx{server: `location /.well-known/oauth-protected-resource { PROXY; add_header Access-Control-Allow-Origin *; }`}},
	{name: "no CORS at the metadata", id: "browser-metadata", state: doctor.Broken,
		nginx: nginx{issuer: `location /.well-known/ { PROXY; proxy_hide_header Access-Control-Allow-Origin; }`}},
	{name: "no CORS at the token endpoint", id: "browser-endpoints", state: doctor.Broken,
		nginx: nginx{issuer: `location = /token { PROXY; if ($request_method = OPTIONS) { return 405; } }`}},
	{name: "no CORS with errors", id: "browser-errors", state: doctor.Broken,
		nginx: nginx{issuer: `location = /token { default_type application/json; if ($request_method = OPTIONS) { add_header Access-Control-Allow-Origin *; add_header Access-Control-Allow-Headers "Authorization, Content-Type"; return 204; } PROXY; proxy_hide_header Access-Control-Allow-Origin; }`}},
	{name: "CORS at the authorization endpoint", id: "browser-authorize", state: doctor.Warn,
		nginx: nginx{issuer: `location = /authorize { PROXY; add_header Access-Control-Allow-Origin * always; }`}},

	{name: "no way to register", id: "registration-way", state: doctor.Broken,
		nginx: nginx{issuerProxy: rewrite(`"registration_endpoint":`, `"registration":`) + rewrite(`"client_id_metadata_document_supported":true`, `"client_id_metadata_document_supported":false`)},
		also:  []string{"cimd-advertised"}},
	{name: "registration blocked", id: "registration-answer", state: doctor.Broken,
		nginx: nginx{issuer: `location = /register { PROXY; limit_except OPTIONS { deny all; } }`}, fix: "pass POST"},
	{name: "registration blocked, OPTIONS too", id: "registration-answer", state: doctor.Broken, fix: "pass POST", nginx: nginx{issuer: `location = /register { return 403; }`}},
	{name: "documents not advertised", id: "cimd-advertised", state: doctor.Warn, nginx: nginx{issuerProxy: rewrite(`"client_id_metadata_document_supported":true,`, ``)}},
	{name: "document of no use", id: "cimd-accepted", state: doctor.Broken, nginx: nginx{issuer: `if ($arg_client_id ~ "client.example") { return 400; }`}},
	{name: "A12 a null in the registration", id: "registration-works", state: doctor.Broken, change: write,
		nginx: nginx{issuerProxy: rewrite(`"client_id_issued_at":`, `"client_secret_expires_at":null,"client_id_issued_at":`)}, also: []string{"registration-removed"}},
	{name: "A10 private-use schemes are refused", id: "registration-mixed", state: doctor.Broken, change: write,
		options: func(c *config.Config) { c.RegistrationRedirectSchemes = []string{"https", "http"} }},
	{name: "a client cannot be removed", id: "registration-removed", state: doctor.Warn, change: write,
		nginx: nginx{issuer: `location ~ ^/register/ { PROXY; limit_except GET PUT { deny all; } }`}},

	{name: "authorization endpoint not routed", id: "authorize-answer", state: doctor.Broken, fix: "route", nginx: nginx{issuer: `location = /authorize { return 404; }`}},
	{name: "authorization endpoint behind a firewall", id: "authorize-answer", state: doctor.Broken, fix: "/authorize", nginx: nginx{issuer: `location = /authorize { return 403; }`}},
	{name: "authorization endpoint behind a password", id: "authorize-answer", state: doctor.Broken, fix: "/authorize", nginx: nginx{issuer: `location = /authorize { return 401; }`}},
	{name: "authorization endpoint behind another Host", id: "authorize-answer", state: doctor.Broken, fix: "proxy_set_header Host $host",
		nginx: nginx{issuer: `location = /authorize { PROXY WITHOUT HOST; }`}},
	{name: "authorization endpoint has no backend", id: "authorize-answer", state: doctor.Broken, fix: "does not reach", nginx: nginx{issuer: `location = /authorize { proxy_pass http://127.0.0.1:1; }`}},
	{name: "open redirector", id: "authorize-redirect", state: doctor.Broken,
		nginx: nginx{issuer: `if ($arg_client_id = ostiary-doctor) { return 302 https://doctor.example/callback?error=invalid_client; }`}, also: []string{"authorize-answer"}},
	{name: "pages can be framed", id: "authorize-frames", state: doctor.Warn, nginx: nginx{issuerProxy: `proxy_hide_header Content-Security-Policy; proxy_hide_header X-Frame-Options;`}},
	{name: "A20 a registration is forgotten", id: "authorize-accepts", state: doctor.Broken, change: write,
		nginx: nginx{issuer: `set $who "$uri $arg_client_id"; if ($who ~ "^/authorize (?!https|ostiary-doctor)") { return 400; }`}},
	{name: "no PKCE asked for", id: "authorize-pkce", state: doctor.Broken,
		nginx: nginx{issuer: `set $plain "$uri$arg_code_challenge"; if ($plain = /authorize) { return 303 /sign-in; }`}},
	{name: "a loopback port is fixed", id: "authorize-port", state: doctor.Broken, nginx: nginx{issuer: `if ($arg_redirect_uri ~ 49321) { return 400; }`}},

	{name: "token endpoint fails", id: "token-answer", state: doctor.Broken,
		nginx: nginx{issuer: `location = /token { PROXY; if ($request_method = POST) { return 502; } }`}, fix: "does not reach"},
	{name: "token endpoint redirects", id: "token-answer", state: doctor.Broken,
		nginx: nginx{issuer: `location = /token { PROXY; if ($request_method = POST) { return 307 https://www.example.com/token; } }`}, fix: "in the metadata"},
	{name: "token endpoint redirects, OPTIONS too", id: "token-answer", state: doctor.Broken, fix: "in the metadata", nginx: nginx{issuer: `location = /token { return 301 https://$host/token/; }`}},
	{name: "token endpoint blocked", id: "token-answer", state: doctor.Broken, fix: "pass POST", nginx: nginx{issuer: `location = /token { return 403; }`}},
	{name: "token endpoint behind another Host", id: "token-answer", state: doctor.Broken, fix: "proxy_set_header Host $host", nginx: nginx{issuer: `location = /token { PROXY WITHOUT HOST; }`}},
	{name: "errors say nothing", id: "token-error", state: doctor.Warn, nginx: nginx{issuerProxy: rewrite(`"error":"invalid_client"`, `"error":"invalid_request"`)}},
	{name: "tokens may be stored", id: "token-cache", state: doctor.Warn, nginx: nginx{issuerProxy: `proxy_hide_header Cache-Control;`}, also: []string{"keys-cache"}},
	{name: "credentials dropped", id: "token-basic", state: doctor.Broken, nginx: nginx{issuerProxy: `proxy_set_header Authorization "";`}},
	{name: "no revocation", id: "revocation", state: doctor.Warn, nginx: nginx{issuerProxy: rewrite(`"revocation_endpoint":`, `"revocation":`)}},
	{name: "revocation fails", id: "login-revoked", state: doctor.Broken, change: write,
		nginx: nginx{issuer: `location = /revoke { default_type application/json; if ($request_method = OPTIONS) { add_header Access-Control-Allow-Origin *; add_header Access-Control-Allow-Headers "Authorization, Content-Type"; return 204; } return 503 '{"error":"temporarily_unavailable"}'; }`},
		also:  []string{"revocation", "registration-removed"}},

	{name: "the person refuses", id: "login", state: doctor.Broken, change: func(s *setup, o *doctor.Options) {
		s.logIn(o)
		o.Begin = func(context.Context) (doctor.Attempt, error) { return &refusing{person{s.issuer.Person()}}, nil }
	}},
	{name: "MM-16 another token type", id: "login-token", state: doctor.Broken, change: write, nginx: nginx{issuerProxy: rewrite(`"token_type":"Bearer"`, `"token_type":"mac"`)}},
	{name: "no refresh token", id: "refresh", state: doctor.Warn, change: write, nginx: nginx{issuerProxy: rewrite(`"refresh_token":"ost`, `"refresh":"ost`)}},
	{name: "token of another issuer", id: "access-issuer", state: doctor.Broken, change: forged(`"iss":"https://evil.example.com"`), also: []string{"access-signature", "access-lifetime"}},
	{name: "expired token", id: "access-lifetime", state: doctor.Broken, change: forged(`"iss":"https://id.example.com","exp":1`),
		also: []string{"access-signature", "access-accepted"}},

	{name: "keys not routed", id: "keys-served", state: doctor.Broken, nginx: nginx{issuer: `location = /jwks.json { return 404; }`}},
	{name: "MM-03 private keys", id: "keys-public", state: doctor.Broken, nginx: nginx{issuerProxy: rewrite(`"kty":"EC"`, `"kty":"EC","d":"c2VjcmV0"`)}},
	{name: "keys of no use", id: "keys-usable", state: doctor.Broken, nginx: nginx{issuerProxy: rewrite(`"alg":"ES256"`, `"alg":"none"`)}},
	{name: "keys cached for a year", id: "keys-cache", state: doctor.Warn,
		nginx: nginx{issuer: `location = /jwks.json { PROXY; proxy_hide_header Cache-Control; add_header Cache-Control "max-age=31536000"; }`}},
	{name: "keys of another server", id: "access-signature", state: doctor.Broken, change: write, nginx: nginx{issuerProxy: rewrite(`"kid":"`, `"kid":"not-`)}},
}

// TestFaults breaks one thing at a time: it is found and named, and nothing else is
// but what follows from it.
func TestFaults(t *testing.T) {
	t.Parallel()
	shared := newSetup(t)
	if len(faults) < 30 {
		t.Fatalf("%d faults", len(faults))
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			s := shared
			if f.options != nil {
				s = newSetup(t, f.options)
			}
			r := s.examine(t, f.nginx, func(o *doctor.Options) {
				if f.change != nil {
					f.change(s, o)
				}
			})
			checkFindings(t, r, map[string]doctor.State{f.id: f.state}, f.also)
			if i := slices.IndexFunc(r.Findings, func(found doctor.Finding) bool { return found.ID == f.id }); !strings.Contains(r.Findings[i].Fix, f.fix) {
				t.Errorf("the advice is %q, want %q in it", r.Findings[i].Fix, f.fix)
			}
		})
	}
}

// checkFindings wants exactly these states, and allows the others.
func checkFindings(t *testing.T, r *doctor.Report, want map[string]doctor.State, also []string) {
	t.Helper()
	for _, f := range r.Findings {
		state, wanted := want[f.ID]
		switch {
		case wanted && f.State != state:
			t.Errorf("%s is %s, want %s: %s", f.ID, f.State, state, f.Why)
		case wanted:
			if f.Why == "" || f.Fix == "" || f.Reference == "" || len(f.Clients) == 0 {
				t.Errorf("%s does not say enough: %+v", f.ID, f)
			}
		case (f.State == doctor.Broken || f.State == doctor.Warn) && !slices.Contains(also, f.ID):
			t.Errorf("%s is %s too: %s; asked %s; came %s", f.ID, f.State, f.Why, f.Asked, f.Came)
		}
		delete(want, f.ID)
	}
	for id := range want {
		t.Errorf("%s is not in the report", id)
	}
}

// unbroken are checks that no fault here breaks, with the reason.
var unbroken = map[string]string{
	"server-speed":    "TestSlowAnswer of internal/doctor: here it would take five seconds",
	"access-token":    "it is there or not",
	"access-audience": "TestGivenToken has a token for another server",
}

// TestEveryCheckHasAFault: what nothing breaks, nothing tests.
func TestEveryCheckHasAFault(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	for _, f := range faults {
		broken[f.id] = true
	}
	for _, c := range doctor.Checks() {
		// the issuer's network is looked at by the code of the server's
		id := c.ID
		if c.Hop == doctor.HopIssuerNetwork && !broken[id] {
			id = strings.Replace(id, "issuer-", "server-", 1)
		}
		if broken[id] == (unbroken[id] != "") {
			t.Errorf("%s: broken by a fault: %t, excused: %q", c.ID, broken[id], unbroken[id])
		}
	}
}

// TestHealthy: no finding where nothing is broken, for each client too, and with a
// log-in nothing is skipped and nothing stays.
func TestHealthy(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	t.Run("nothing written", func(t *testing.T) {
		checkFindings(t, s.examine(t, nginx{}, nil), nil, nil)
	})
	t.Run("with a log-in", func(t *testing.T) {
		r := s.examine(t, nginx{}, s.logIn)
		checkFindings(t, r, nil, nil)
		for _, f := range r.Findings {
			if f.State == doctor.Skipped {
				t.Errorf("%s was skipped: %s", f.ID, f.Why)
			}
		}
		if len(r.Left) > 0 {
			t.Errorf("left: %q", r.Left)
		}
	})
	t.Run("an issuer", func(t *testing.T) {
		r := s.examine(t, nginx{}, func(o *doctor.Options) { o.URL = testkit.Issuer })
		if r.Kind != doctor.KindIssuer {
			t.Errorf("kind %s", r.Kind)
		}
		checkFindings(t, r, nil, nil)
		// as a browser copies it
		checkFindings(t, s.examine(t, nginx{}, func(o *doctor.Options) { o.URL = testkit.Issuer + "/" }), nil, nil)
	})
	t.Run("an issuer with a path", func(t *testing.T) {
		s := newSetup(t, func(c *config.Config) { c.Issuer = testkit.Issuer + "/tenant/one" })
		checkFindings(t, s.examine(t, nginx{}, s.logIn), nil, nil)
		checkFindings(t, s.examine(t, nginx{}, func(o *doctor.Options) { o.URL = s.issuer.Config.Issuer }), nil, nil)
	})
	t.Run("an MCP server without a path", func(t *testing.T) {
		const root = "https://mcp.example.com"
		s := newSetup(t)
		if _, err := s.issuer.App.Resources.Add(t.Context(), resource.Resource{Identifier: root, Name: "Root",
			Scopes: []resource.Scope{{Name: "files:read", Title: "See your files", Default: true}}}); err != nil {
			t.Fatal(err)
		}
		s.server = host(protected(t, s.issuer, root).URL)
		checkFindings(t, s.examine(t, nginx{}, func(o *doctor.Options) { o.URL = root; s.logIn(o) }), nil, nil)
		// what hands on its issuer's metadata is no issuer, even where it challenges nobody
		lost := nginx{server: `location = / { default_type application/json; return 404 "{}"; } location /.well-known/oauth-protected-resource { return 404; }`}
		checkFindings(t, s.examine(t, lost, func(o *doctor.Options) { o.URL = root }),
			map[string]doctor.State{"challenge-status": doctor.Broken, "resource-served": doctor.Broken}, nil)
		checkFindings(t, s.examine(t, nginx{server: `location = /.well-known/oauth-protected-resource { return 401; }`}, func(o *doctor.Options) { o.URL = root }),
			map[string]doctor.State{"resource-public": doctor.Broken}, nil)
		// a slash that a person adds is no fault of the server's
		checkFindings(t, s.examine(t, nginx{}, func(o *doctor.Options) { o.URL = root + "/" }), map[string]doctor.State{"resource-identity": doctor.Warn}, nil)
	})
	for _, id := range doctor.ClientIDs() {
		t.Run("as "+id, func(t *testing.T) {
			r := s.examine(t, nginx{}, func(o *doctor.Options) { o.As = id })
			for _, step := range r.Replay {
				if step.State != doctor.OK {
					t.Errorf("%s: %s", step.State, step.Text)
				}
			}
			if len(r.Replay) < 5 || r.Broken() != 0 {
				t.Errorf("%d broken, steps %+v", r.Broken(), r.Replay)
			}
		})
	}
}
