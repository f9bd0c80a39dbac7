package authclient

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// secretParameters are the parameters whose values are secrets, or good for one use.
var secretParameters = []string{"client_secret", "client_assertion", "assertion", "subject_token", "refresh_token", "code",
	"code_verifier", "device_code", "token"}

// minEcho is the length below which a value is not looked for: it is part of words.
const minEcho = 8

// secretsOf returns what is secret of a request, as it was written and as servers may
// write it: longer ones first, since one may be a part of another.
func secretsOf(header http.Header, body []byte) []string {
	authorization := header.Get("Authorization")
	_, credentials, _ := strings.Cut(authorization, " ")
	sent := []string{header.Get("DPoP"), authorization, credentials}
	if header.Get("Content-Type") == formType {
		form, _ := url.ParseQuery(string(body)) // it is ours; what can be read of it is enough
		for _, name := range secretParameters {
			sent = append(sent, form[name]...)
		}
	}
	if _, password, ok := (&http.Request{Header: header}).BasicAuth(); ok {
		sent = append(sent, password)
		if raw, err := url.QueryUnescape(password); err == nil {
			sent = append(sent, raw)
		}
	}
	for _, secret := range sent {
		sent = append(sent, url.QueryEscape(secret), url.PathEscape(secret))
	}
	slices.SortStableFunc(sent, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(sent)
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
