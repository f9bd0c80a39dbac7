package oauth_test

import (
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

func TestChallenge(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    oauth.Challenge
		want string
	}{
		{"scheme alone", oauth.Challenge{Scheme: "Bearer"}, "Bearer"},
		{"M1 order, quotes, an empty value left out",
			oauth.Challenge{Scheme: "Bearer", Params: [][2]string{{"error", ""}, {"resource_metadata", "https://a/b"}, {"scope", "x y"}}},
			`Bearer resource_metadata="https://a/b", scope="x y"`},
		{"JW-30 quotes, CRLF and non-ASCII cannot leave the string",
			oauth.Challenge{Scheme: "Bearer", Params: [][2]string{{"scope", "a\"b\\c\r\nSet-Cookie: x=ü"}}},
			`Bearer scope="a\"b\\cSet-Cookie: x="`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.c.String(); got != tt.want {
				t.Errorf("String = %s, want %s", got, tt.want)
			}
		})
	}
}
