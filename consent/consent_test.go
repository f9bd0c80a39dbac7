package consent

import (
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/registration"
)

func TestCS11_Covers(t *testing.T) {
	c := Consent{Subject: "mina", ClientID: "quill", RedirectURI: "http://localhost/cb", Resource: "https://mcp.example",
		Scopes: []string{"read", "write"}, DocumentHash: "h1"}
	res := resource.Resource{Scopes: []resource.Scope{{Name: "write", Implies: []string{"append"}}, {Name: "append"}}}
	base := Request{Subject: "mina", ClientID: "quill", RedirectURI: "http://localhost:50000/cb", Resource: "https://mcp.example",
		Scopes: []string{"read"}, DocumentHash: "h1"}
	for _, tt := range []struct {
		name   string
		change func(*Request)
		want   bool
	}{
		{"the same, loopback port aside", func(*Request) {}, true},
		{"all of the scopes", func(r *Request) { r.Scopes = []string{"write", "read"} }, true},
		{"D13 a scope that an allowed one implies", func(r *Request) { r.Scopes = []string{"append"} }, true},
		{"no scope", func(r *Request) { r.Scopes = nil }, true},
		{"SC-06 one scope more", func(r *Request) { r.Scopes = []string{"read", "delete"} }, false},
		{"other redirect path", func(r *Request) { r.RedirectURI = "http://localhost:50000/other" }, false},
		{"other redirect host", func(r *Request) { r.RedirectURI = "http://127.0.0.1:50000/cb" }, false},
		{"other resource", func(r *Request) { r.Resource = "https://mcp.example/x" }, false},
		{"changed metadata", func(r *Request) { r.DocumentHash = "h2" }, false},
		{"DR-18 other client of the same name", func(r *Request) { r.ClientID = "quil1" }, false},
		{"other person", func(r *Request) { r.Subject = "noor" }, false},
		{"refresh token that was not allowed", func(r *Request) { r.StayConnected = true }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := base
			tt.change(&r)
			if got := c.Covers(res, r); got != tt.want {
				t.Errorf("Covers(%+v) = %t, want %t", r, got, tt.want)
			}
		})
	}
}

func TestD11_MayRemember(t *testing.T) {
	document := registration.Client{ID: "https://quill.example/client.json", Kind: registration.KindCIMD}
	verified := document
	verified.VerifiedAt = time.Unix(1, 0)
	for _, tt := range []struct {
		name, uri string
		c         registration.Client
		want      bool
	}{
		{"added by the operator", "http://127.0.0.1/cb", registration.Client{Kind: registration.KindOperator}, true},
		{"registered itself", "https://quill.example/cb", registration.Client{ID: "quill", Kind: registration.KindDynamic}, false},
		{"registered itself, then verified", "http://127.0.0.1/cb", registration.Client{Kind: registration.KindDynamic, VerifiedAt: time.Unix(1, 0)}, true},
		{"A34 metadata document, its own site", "https://login.quill.example/cb", document, true},
		{"metadata document, another site", "https://borealis.example/cb", document, false},
		{"CI-18 metadata document, loopback", "http://127.0.0.1:5000/cb", document, false},
		{"CI-18 metadata document, a loopback URI that names its site", "http://localhost/quill.example", document, false},
		{"metadata document, private-use scheme", "example.quill:/cb", document, false},
		{"metadata document, verified", "http://127.0.0.1:5000/cb", verified, true},
		{"metadata document on a public suffix", "https://two.github.io/cb", registration.Client{ID: "https://one.github.io/c", Kind: registration.KindCIMD}, false},
	} {
		if got := MayRemember(&tt.c, tt.uri); got != tt.want {
			t.Errorf("%s: MayRemember = %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestD32_Warning(t *testing.T) {
	dynamic := &registration.Client{Kind: registration.KindDynamic}
	operator := &registration.Client{Kind: registration.KindOperator}
	document := &registration.Client{ID: "https://quill.example/client.json", Kind: registration.KindCIMD}
	claude := &registration.Client{ID: "https://claude.ai/oauth/mcp-oauth-client-metadata", Kind: registration.KindCIMD}
	verified := &registration.Client{ID: document.ID, Kind: registration.KindCIMD, VerifiedAt: time.Unix(1, 0)}
	for _, tt := range []struct {
		name, issuer, uri string
		client            *registration.Client
		want              string
	}{
		{"loopback", "https://id.fernhill.example", "http://127.0.0.1:5000/cb", dynamic, "loopback"},
		{"loopback of a client the operator added", "https://id.fernhill.example", "http://localhost/cb", operator, "loopback"},
		{"private-use scheme", "https://id.fernhill.example", "com.example.app:/cb", dynamic, "loopback"},
		{"other site", "https://id.fernhill.example", "https://app.example/cb", dynamic, "other_site"},
		{"other site of a client the operator added", "https://id.fernhill.example", "https://app.example/cb", operator, ""},
		{"operator's site", "https://id.fernhill.example", "https://tools.fernhill.example:8443/cb", dynamic, ""},
		{"a site that only ends alike", "https://id.fernhill.example", "https://evilfernhill.example/cb", dynamic, "other_site"},
		{"a public suffix is no site", "https://one.github.io", "https://two.github.io/cb", dynamic, "other_site"},
		{"known host", "https://id.fernhill.example", "https://claude.ai/api/mcp/auth_callback", dynamic, ""},
		{"looks like a known host", "https://id.fernhill.example", "https://claude.ai.evil.example/api", dynamic, "other_site"},
		{"below a known host", "https://id.fernhill.example", "https://x.claude.ai/api", dynamic, "other_site"},
		{"CI-18 document, loopback", "https://id.fernhill.example", "http://127.0.0.1:5000/cb", claude, "loopback"},
		{"document, its own site", "https://id.fernhill.example", "https://quill.example/cb", document, "other_site"},
		{"document, another site", "https://id.fernhill.example", "https://borealis.example/cb", document, "different_site"},
		{"document, to the operator's site", "https://id.fernhill.example", "https://tools.fernhill.example/cb", document, "different_site"},
		{"document, to a known host", "https://id.fernhill.example", "https://claude.ai/api/mcp/auth_callback", document, "different_site"},
		{"document of a known host", "https://id.fernhill.example", "https://claude.ai/api/mcp/auth_callback", claude, ""},
		{"document of a known host, to its other host", "https://id.fernhill.example", "https://claude.com/api/mcp/auth_callback", claude, ""},
		{"document of a known host, elsewhere", "https://id.fernhill.example", "https://borealis.example/cb", claude, "different_site"},
		{"document of a verified client, elsewhere", "https://id.fernhill.example", "https://borealis.example/cb", verified, "different_site"},
		{"development mode", "http://localhost:8414", "https://app.example/cb", dynamic, "other_site"},
		{"development mode, own host", "http://localhost:8414", "https://localhost:9000/cb", dynamic, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			goes, _, _ := registration.DescribeRedirect(tt.uri)
			if got := warning(tt.issuer, tt.client, tt.uri, goes); string(got) != tt.want {
				t.Errorf("warning = %q, want %q", got, tt.want)
			}
		})
	}
}
