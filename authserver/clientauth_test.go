package authserver

import (
	"encoding/base64"
	"slices"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

func TestA17_BasicCredentials(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		ids       []string
		secret    string
		fails     bool
	}{
		{name: "form-encoded as RFC 6749 2.3.1", raw: "my%20id:s%2Bt", ids: []string{"my id"}, secret: "s+t"},
		{name: "raw, as the TypeScript SDK sends it", raw: "abc:d-e_f", ids: []string{"abc"}, secret: "d-e_f"},
		{name: "raw secret with a plus is tried raw second", raw: "abc:a+b", ids: []string{"abc", "abc"}, secret: "a b"},
		{name: "go-sdk probe: URL client_id, empty password", raw: "https%3A%2F%2Fa.example%2Fc.json:", ids: []string{"https://a.example/c.json"}},
		{name: "broken encoding is raw", raw: "abc:100%", ids: []string{"abc"}, secret: "100%"},
		{name: "no colon", raw: "abc", fails: true},
		{name: "no id", raw: ":secret", fails: true},
		{name: "line break", raw: "abc:\r\nx", fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := basicCredentials(base64.StdEncoding.EncodeToString([]byte(tt.raw)))
			if (err != nil) != tt.fails {
				t.Fatalf("err = %v", err)
			}
			if tt.fails {
				return
			}
			if !slices.Equal(got.ids, tt.ids) || got.secrets[0].Reveal() != tt.secret {
				t.Errorf("ids %v secret %q, want %v %q", got.ids, got.secrets[0].Reveal(), tt.ids, tt.secret)
			}
		})
	}
	if _, err := basicCredentials("YWJjOmQ=\n"); err == nil {
		t.Error("base64 with a newline was accepted")
	}
}

func FuzzBasicCredentials(f *testing.F) {
	for _, raw := range []string{"abc:def", "a%20b:c%2Bd", "abc:100%", ":", "a:b:c", "\x00:\x00", "https%3A%2F%2Fx:"} {
		f.Add(base64.StdEncoding.EncodeToString([]byte(raw)))
	}
	f.Add("%%%")
	f.Fuzz(func(t *testing.T, encoded string) {
		c, err := basicCredentials(encoded)
		if err != nil {
			return
		}
		if len(c.ids) == 0 || len(c.ids) != len(c.secrets) || len(c.ids) > 2 {
			t.Fatalf("%d ids, %d secrets", len(c.ids), len(c.secrets))
		}
	})
}

func TestOneCredentialOnly(t *testing.T) {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("abc:def"))
	for _, tt := range []struct {
		name   string
		params oauth.Params
		header string
		want   string
	}{
		{"Basic with an equal body client_id (A17)", oauth.Params{"client_id": {"abc"}}, basic, ""},
		{"Basic with another body client_id", oauth.Params{"client_id": {"xyz"}}, basic, "invalid_request"},
		{"Basic and client_secret", oauth.Params{"client_secret": {"def"}}, basic, "invalid_request"},
		{"nothing at all", oauth.Params{}, "", "invalid_client"},
		{"broken Basic", oauth.Params{}, "Basic !!!", "invalid_client"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readCredentials(&unit{params: tt.params, header: tt.header})
			if got := oauth.Code(err); got != tt.want {
				t.Errorf("code = %q, want %q (%v)", got, tt.want, err)
			}
		})
	}
}
