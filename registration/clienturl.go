package registration

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// maxClientURL bounds a client_id that is a URL, in bytes: it stands in keys of
// several tables, beside a redirect URI.
const maxClientURL = 512

// IsClientURL reports whether s has the form of a Client Identifier URL
// (draft-ietf-oauth-client-id-metadata-document §3).
func IsClientURL(s string) bool { return checkClientURL(s) == nil }

// ClientHost returns the host of a client_id that is a URL, with its port where
// it names one; "" for any other client_id.
func ClientHost(clientID string) string {
	rest, ok := strings.CutPrefix(clientID, "https://")
	if !ok || !IsClientURL(clientID) {
		return ""
	}
	host, _ := splitAuthority(rest)
	return host
}

// checkClientURL applies §3 of the draft to the text as it was sent, because the
// text is the identifier: https, a path, no fragment, no user, no dot segments,
// plain or encoded. Host and port must be written in their one canonical form, so
// that a host has no second spelling that a rule or a person would miss. A query
// is allowed, as §3 allows it.
func checkClientURL(raw string) error {
	rest, ok := strings.CutPrefix(raw, "https://")
	switch {
	case !ok:
		return errors.New("a client_id that is a URL must begin with https://")
	case len(raw) > maxClientURL:
		return errors.New("a client_id that is a URL must not be longer than 512 bytes")
	case strings.ContainsRune(raw, '#'):
		return errors.New("a client_id must not have a fragment")
	case !isRedirectText(raw):
		return errors.New("a client_id has a character that a URL may not contain")
	}
	authority, tail := splitAuthority(rest)
	if err := checkClientAuthority(authority); err != nil {
		return err
	}
	path, _, _ := strings.Cut(tail, "?")
	return checkClientPath(path)
}

func checkClientAuthority(authority string) error {
	host, port, ok := splitPort(authority)
	switch {
	case strings.Contains(authority, "@"):
		return errors.New("a client_id must not have a user or password")
	case !ok || port == "443" || port == "0":
		return errors.New("the port of a client_id must be a number, and 443 is left out")
	case !isHost(host):
		return errors.New("the host of a client_id is not a valid name")
	case strings.ToLower(host) != host:
		return errors.New("the host of a client_id must be in lower case")
	}
	return nil
}

func checkClientPath(path string) error {
	if strings.TrimLeft(path, "/") == "" {
		return errors.New("a client_id must have a path: the address of a document, not of a website")
	}
	decoded, err := url.PathUnescape(path)
	if err != nil || !isPlainText(decoded) {
		return errors.New("the path of a client_id cannot be decoded")
	}
	if slices.ContainsFunc(strings.Split(decoded, "/"), func(s string) bool { return s == "." || s == ".." }) {
		return errors.New("the path of a client_id must not have dot segments")
	}
	return nil
}
