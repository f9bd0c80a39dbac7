package doctor

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// answered is an exchange with this answer.
func answered(status int, rawURL, body string, header ...string) *exchange {
	e := &exchange{query: get(rawURL), status: status, header: http.Header{}, body: []byte(body)}
	for i := 0; i+1 < len(header); i += 2 {
		e.header.Set(header[i], header[i+1])
	}
	return e
}

func TestStatusFix(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"another host", 421, `{"error":"invalid_request"}`, "proxy_set_header Host $host"},
		{"rate limit", 429, "", "rate limit"},
		{"backend away", 502, "<html>", "proxy does not reach"},
		{"backend slow", 504, "", "proxy does not reach"},
		{"backend away or busy", 503, "<html>", "limit_req_status"},
		{"the server says so itself", 503, `{"error":"temporarily_unavailable"}`, ""},
		{"not found", 404, "", ""},
		{"the server fails", 500, "", ""},
	} {
		got := statusFix(answered(tt.status, "https://a.example/", tt.body))
		if !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := statusFix(nil); got != "" {
		t.Errorf("no exchange: %q", got)
	}
}

// Where a redirect leads tells whether a URL was spelled otherwise or somebody
// shall sign in.
func TestSignsOn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, from, to string
		want           bool
	}{
		{"a slash", "https://a.example/mcp", "/mcp/", false},
		{"https", "http://a.example/mcp", "https://a.example/mcp", false},
		{"another name of the host", "https://a.example/mcp", "https://www.a.example/mcp", false},
		{"another path", "https://a.example/mcp", "/v2/mcp", false},
		{"another origin", "https://a.example/mcp", "https://sso.example/start", true},
		{"a sign-in on the host itself", "https://a.example/mcp", "/oauth2/sign_in?rd=%2Fmcp", true},
		{"no place", "https://a.example/mcp", "", false},
		{"no URL", "https://a.example/mcp", "https://%zz", false},
	} {
		if got := answered(302, tt.from, "", "Location", tt.to).signsOn(); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	if answered(200, "https://a.example/mcp", "").signsOn() {
		t.Error("200 is no redirect")
	}
}

// A proxy's own page says its status; a server's says more.
func TestBare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, body, media string
		want              bool
	}{
		{"nginx", "<html><head><title>403 Forbidden</title></head>", "text/html", true},
		{"Apache", "<title>Forbidden</title>", "text/html", true},
		{"a gateway", "<title>Access Denied</title>", "text/html", true},
		{"Envoy", "RBAC: access denied", "text/plain", true},
		{"nothing", "", "", true},
		{"short, without a title", "<html>no</html>", "text/html", true},
		{"a server's page", "<title>Unknown client – Example</title>", "text/html", false},
		{"a server's JSON", `{"error":"unauthorized_client"}`, "application/json", false},
	} {
		if got := answered(403, "https://a.example/authorize", tt.body, "Content-Type", tt.media).bare(); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

func TestInsteadOf(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]bool{"http://127.0.0.1:8080/mcp": true, "http://10.0.0.5/mcp": true, "http://backend:8080/mcp": true,
		"http://localhost/mcp": true, "https://b.example/mcp": false, "https://192.0.1.7/mcp": false, "": false, "%": false} {
		if insteadOf(got, "https://a.example/mcp") != want {
			t.Errorf("%q: %t", got, !want)
		}
	}
	if insteadOf("http://127.0.0.1:1/mcp", "http://localhost/mcp") {
		t.Error("inside, inner names are right")
	}
}

// A program reads what the answer says of itself, however long it is.
func TestExcerptOfLongErrors(t *testing.T) {
	t.Parallel()
	e := answered(421, "https://a.example/", `{"error":"invalid_request","error_description":"`+strings.Repeat("ä", maxExcerpt)+`"}`)
	if got := e.excerpt(); got != strings.Repeat("ä", maxExcerpt/2) {
		t.Errorf("%q", got)
	}
}

// The rows about PKCE name the clients whose walk stops there.
func TestPKCERows(t *testing.T) {
	t.Parallel()
	for _, c := range knowledge().Clients {
		for row, stops := range map[string]bool{pkceAbsent: c.Walk.PKCE == "required", "metadata-pkce": c.Walk.PKCE != "no"} {
			named := slices.ContainsFunc(knowledge().Breaks[row], func(e effect) bool { return slices.Contains(e.Who, c.ID) })
			if named != stops {
				t.Errorf("%s, %s: named %t, but the walk stops: %t", row, c.ID, named, stops)
			}
		}
	}
}
