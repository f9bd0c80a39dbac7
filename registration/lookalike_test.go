package registration

import (
	"testing"
	"time"
)

// app is a client of a metadata document, or of dynamic registration when its id
// is no URL.
func app(id, name string, seen int64, redirectURIs ...string) Client {
	c := Client{ID: id, Kind: KindDynamic, CreatedAt: time.Unix(seen, 0),
		Metadata: ClientMetadata{ClientName: name, RedirectURIs: redirectURIs}}
	if isHTTPS(id) {
		c.Kind = KindCIMD
	}
	return c
}

func TestDR11_LooksLike(t *testing.T) {
	t.Parallel()
	const loopback, web = "http://127.0.0.1:5000/cb", "https://quill.example/cb"
	verified := app("https://atlas.example/client.json", "Atlas Assistant", 100, "https://atlas.example/cb")
	verified.VerifiedAt = time.Unix(200, 0)
	operators := Client{ID: "desk", Kind: KindOperator, CreatedAt: time.Unix(100, 0),
		Metadata: ClientMetadata{ClientName: "Front Desk", RedirectURIs: []string{loopback}}}
	quill := app("https://quill.example/client.json", "Quill Desktop", 50, web)
	others := []Identity{quill.Identity(), verified.Identity(), operators.Identity()}
	for _, tt := range []struct {
		name     string
		c        Client
		redirect string
		want     Likeness
	}{
		{"a name of its own", app("https://borealis.example/c", "Borealis", 60), loopback, Likeness{}},
		{"no name", app("https://borealis.example/c", "", 60), loopback, Likeness{}},
		{"itself", quill, web, Likeness{}},
		{"a known app at its own site", app("https://claude.ai/oauth/claude-code-client-metadata", "Claude Code", 60), loopback, Likeness{}},
		{"a known app that registers on a computer", app("x", "Cursor", 60), "cursor://anysphere.cursor-mcp/oauth/callback", Likeness{}},
		{"a known app that registers on a computer, by another spelling", app("x", "claude-code", 60), loopback, Likeness{}},
		{"a known app that registers with its site", app("x", "Claude", 60), "https://claude.ai/api/mcp/auth_callback", Likeness{}},
		{"CI-18 a known name from another site", app("https://evil.example/c", "Claude Code", 60), loopback, Likeness{Of: "Claude Code"}},
		{"DR-18 a known name whose responses go to another site", app("x", "ChatGPT", 60), "https://evil.example/cb", Likeness{Of: "ChatGPT"}},
		{"DR-11 a Cyrillic letter", app("x", "Сlaude", 60), loopback, Likeness{Of: "Claude", MixedName: true}},
		{"a capital I for an l", app("https://evil.example/c", "CIaude", 60), loopback, Likeness{Of: "Claude"}},
		{"rn for m, a dot and an accent", app("https://evil.example/c", "Át.las Assistant", 60), loopback, Likeness{Of: "Atlas Assistant"}},
		{"digits", app("https://evil.example/c", "At1as-Assistant", 60), loopback, Likeness{Of: "Atlas Assistant"}},
		{"one letter wrong", app("https://evil.example/c", "Quil Desktop", 60), loopback, Likeness{Of: "Quill Desktop"}},
		{"two letters swapped", app("https://evil.example/c", "ChatGTP", 60), loopback, Likeness{Of: "ChatGPT"}},
		{"a short name is another name", app("https://zet.example/c", "Zet", 60), loopback, Likeness{}},
		{"the name of another client, here first", app("https://evil.example/c", "Quill Desktop", 60), loopback, Likeness{Of: "Quill Desktop"}},
		{"the name of another client that came later", app("https://first.example/c", "Quill Desktop", 40), loopback, Likeness{}},
		{"the name of another client, on the same site", app("https://www.quill.example/c", "Quill Desktop", 60), loopback, Likeness{}},
		{"registered on a computer: one app has many rows", app("x", "Quill Desktop", 60), loopback, Likeness{}},
		{"the name of a verified client, earlier", app("https://evil.example/c", "Atlas Assistant", 40), loopback, Likeness{Of: "Atlas Assistant"}},
		{"the name of the operator's client, on a computer", app("x", "Front Desk", 60), loopback, Likeness{Of: "Front Desk"}},
		{"the operator's clients look like nobody", Client{Kind: KindOperator, Metadata: ClientMetadata{ClientName: "Сlaude"}}, loopback, Likeness{}},
		{"CI-19 a known host in front", app("https://claude.ai.evil.example/c", "Helper", 60), loopback, Likeness{Host: "claude.ai.evil.example"}},
		{"CI-19 punycode", app("https://xn--80ak6aa92e.example/c", "Helper", 60), loopback, Likeness{Host: "xn--80ak6aa92e.example"}},
		{"CI-19 punycode where access goes", app("x", "Helper", 60), "https://login.xn--80ak6aa92e.example/cb", Likeness{Host: "login.xn--80ak6aa92e.example"}},
		{"CI-19 a one for an l", app("https://c1aude.ai/c", "Helper", 60), loopback, Likeness{Host: "c1aude.ai"}},
		{"a verified client's host in front", app("https://atlas.example.evil.example/c", "Helper", 60), loopback, Likeness{Host: "atlas.example.evil.example"}},
		{"an unverified client's host in front", app("https://quill.example.evil.example/c", "Helper", 60), loopback, Likeness{}},
		{"below a known host", app("https://x.claude.ai/c", "Helper", 60), loopback, Likeness{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.c.LooksLike(tt.redirect, others); got != tt.want {
				t.Errorf("LooksLike = %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestDR11_NamesThatMixAlphabets(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"Quill Desktop": false, "Квилл Desktop": false, "Яндекс": false, "漢字カタカナABC": false, "Ostiary 2": false, "": false,
		"Quіll": true, "Desktоp Quill": true, "Αtlas": true, "aтlas-x": true,
	} {
		if got := mixesAlphabets(name); got != want {
			t.Errorf("mixesAlphabets(%q) = %t, want %t", name, got, want)
		}
	}
}
