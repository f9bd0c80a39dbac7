package metadata

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// serve starts a server whose answers are by path; %s in one is the server's URL.
func serve(t *testing.T, answers map[string]string) string {
	t.Helper()
	var base string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		status, location, isRedirect := strings.Cut(answer, " -> ")
		switch {
		case !ok:
			http.NotFound(w, r)
		case isRedirect && status == "302":
			http.Redirect(w, r, strings.ReplaceAll(location, "%s", base), http.StatusFound)
		case answer == "500":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, strings.ReplaceAll(answer, "%s", base))
		}
	}))
	t.Cleanup(srv.Close)
	base = srv.URL
	return base
}

func TestFetchProtectedResource(t *testing.T) {
	const good = `{"resource":"%s/mcp","authorization_servers":["https://as.example"],"scopes_supported":["a"],"resource_name":"Files"}`
	foreign := serve(t, map[string]string{"/doc": good})
	for _, tt := range []struct {
		name    string
		answers map[string]string
		wantErr string
	}{
		{name: "own place", answers: map[string]string{"/.well-known/oauth-protected-resource/mcp": good}},
		{name: "root place", answers: map[string]string{"/.well-known/oauth-protected-resource": good}},
		{name: "A23 trailing slash in the document", answers: map[string]string{
			"/.well-known/oauth-protected-resource/mcp": strings.Replace(good, "/mcp", "/mcp/", 1)}},
		{name: "redirect on the origin", answers: map[string]string{
			"/.well-known/oauth-protected-resource/mcp": "302 -> /doc", "/doc": good}},
		{name: "D5 redirect off the origin", wantErr: "another origin", answers: map[string]string{
			"/.well-known/oauth-protected-resource/mcp": "302 -> " + foreign + "/doc"}},
		{name: "redirect without end", wantErr: "redirects", answers: map[string]string{
			"/.well-known/oauth-protected-resource/mcp": "302 -> /.well-known/oauth-protected-resource/mcp"}},
		{name: "nothing served", wantErr: "no metadata document", answers: map[string]string{}},
		{name: "5xx is final", wantErr: "500", answers: map[string]string{
			"/.well-known/oauth-protected-resource/mcp": "500", "/.well-known/oauth-protected-resource": good}},
		{name: "MM-10 sibling path", wantErr: "is of resource", answers: map[string]string{
			"/.well-known/oauth-protected-resource/mcp": strings.Replace(good, "/mcp", "/other", 1)}},
		{name: "MM-10 foreign origin", wantErr: "is of resource", answers: map[string]string{
			"/.well-known/oauth-protected-resource/mcp": strings.Replace(good, "%s", "https://evil.example", 1)}},
		{name: "no resource", wantErr: "resource is empty", answers: map[string]string{
			"/.well-known/oauth-protected-resource/mcp": `{}`}},
		{name: "A4 HTML app shell", wantErr: "protected resource metadata", answers: map[string]string{
			"/.well-known/oauth-protected-resource/mcp": "<!doctype html>"}},
		{name: "D5 larger than 1 MiB", wantErr: "larger than", answers: map[string]string{
			"/.well-known/oauth-protected-resource/mcp": `{"x":"` + strings.Repeat("x", fetchMaxBytes) + `"}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := FetchProtectedResource(t.Context(), nil, serve(t, tt.answers)+"/mcp")
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) || doc.Resource != "" {
					t.Errorf("got %+v, %v; want an error with %q", doc, err, tt.wantErr)
				}
				return
			}
			if err != nil || doc.ResourceName != "Files" {
				t.Errorf("got %+v, %v", doc, err)
			}
		})
	}
}

func TestFetchAuthorizationServer(t *testing.T) {
	const good = `{"issuer":"%s/t","response_types_supported":["code"]}`
	for _, tt := range []struct {
		name    string
		answers map[string]string
		wantErr string
	}{
		{name: "RFC 8414", answers: map[string]string{"/.well-known/oauth-authorization-server/t": good}},
		{name: "OpenID inserted", answers: map[string]string{"/.well-known/openid-configuration/t": good}},
		{name: "OpenID appended", answers: map[string]string{"/t/.well-known/openid-configuration": good}},
		{name: "JW-22 redirect on the origin", wantErr: "302", answers: map[string]string{
			"/.well-known/oauth-authorization-server/t": "302 -> /upload", "/upload": good, "/t/.well-known/openid-configuration": good}},
		{name: "5xx is final", wantErr: "500", answers: map[string]string{
			"/.well-known/oauth-authorization-server/t": "500", "/t/.well-known/openid-configuration": good}},
		{name: "MM-07 other path", wantErr: "is of issuer", answers: map[string]string{
			"/.well-known/oauth-authorization-server/t": strings.Replace(good, "/t", "", 1)}},
		{name: "MM-07 trailing slash", wantErr: "is of issuer", answers: map[string]string{
			"/.well-known/oauth-authorization-server/t": strings.Replace(good, "/t", "/t/", 1)}},
		{name: "MM-07 other host", wantErr: "is of issuer", answers: map[string]string{
			"/.well-known/oauth-authorization-server/t": strings.Replace(good, "%s", "https://evil.example", 1)}},
		{name: "no issuer", wantErr: "no issuer", answers: map[string]string{"/.well-known/oauth-authorization-server/t": `{}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			issuer := serve(t, tt.answers) + "/t"
			doc, err := FetchAuthorizationServer(t.Context(), nil, issuer)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) || doc.Issuer != "" {
					t.Errorf("got %+v, %v; want an error with %q", doc, err, tt.wantErr)
				}
				return
			}
			if err != nil || doc.Issuer != issuer {
				t.Errorf("got %+v, %v", doc, err)
			}
		})
	}
	if _, err := FetchAuthorizationServer(t.Context(), nil, serve(t, nil)); !errors.Is(err, ErrNotServed) {
		t.Errorf("nothing served: err = %v, want ErrNotServed", err)
	}
}

func FuzzParseProtectedResource(f *testing.F) {
	f.Add([]byte(`{"resource":"https://mcp.example/","scopes_supported":["a"]}`))
	f.Add([]byte(`{"resource":["x"]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, err := ParseProtectedResource(body, "https://mcp.example")
		if err == nil && doc.Resource == "" {
			t.Error("accepted a document without resource")
		}
	})
}

func FuzzParseAuthorizationServer(f *testing.F) {
	good, _ := json.Marshal(document("https://as.example"))
	f.Add(good)
	f.Add([]byte(`{"issuer":"https://as.example/"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if doc, err := ParseAuthorizationServer(body, "https://as.example"); err == nil && doc.Issuer != "https://as.example" {
			t.Error("accepted a document of another issuer")
		}
	})
}

func ExampleProtectedResourceURL() {
	u, _ := ProtectedResourceURL("https://mcp.example/files")
	fmt.Println(u)
	// Output: https://mcp.example/.well-known/oauth-protected-resource/files
}

// M9: who hands the document on hands on these bytes.
func TestFetchAuthorizationServerDocument(t *testing.T) {
	const odd = "{ \"x-unknown\" : 1.0,\n\"issuer\":\"%s\", \"jwks_uri\":\"%s/jwks\" }\n"
	base := serve(t, map[string]string{"/.well-known/oauth-authorization-server": odd})
	doc, body, err := FetchAuthorizationServerDocument(t.Context(), nil, base)
	if want := strings.ReplaceAll(odd, "%s", base); err != nil || string(body) != want || doc.JWKSURI != base+"/jwks" {
		t.Errorf("got %+v, %q, %v; want %q", doc, body, err, want)
	}
	other := serve(t, map[string]string{"/.well-known/oauth-authorization-server": strings.Replace(odd, "%s", "https://evil.example", 1)})
	if doc, body, err := FetchAuthorizationServerDocument(t.Context(), nil, other); err == nil || body != nil || doc.Issuer != "" {
		t.Errorf("MM-07 got %+v, %q, %v; want nothing but an error", doc, body, err)
	}
}
