package authclient

import (
	"net/http"
	"net/url"
	"strings"
)

// secretParameters are the parameters whose values are secrets, or good for one use.
var secretParameters = []string{"client_secret", "client_assertion", "assertion", "subject_token", "refresh_token", "code",
	"code_verifier", "device_code", "token"}

// minEcho is the length below which a value is not looked for: it is part of words.
const minEcho = 8

// secretsOf returns what is secret of a request.
func secretsOf(form url.Values, header http.Header) []string {
	sent := []string{header.Get("DPoP")}
	for _, name := range secretParameters {
		sent = append(sent, form[name]...)
	}
	if _, password, ok := (&http.Request{Header: header}).BasicAuth(); ok {
		sent = append(sent, password, strings.TrimPrefix(header.Get("Authorization"), "Basic "))
		if raw, err := url.QueryUnescape(password); err == nil {
			sent = append(sent, raw)
		}
	}
	return sent
}

// withoutEchoes takes the secrets that were sent out of a server's words: some repeat
// in error_description what they were given, and an error is printed and logged.
func (a *answer) withoutEchoes(text string) string {
	for _, secret := range a.sent {
		if len(secret) >= minEcho {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}
