package registration

import (
	"slices"
	"strings"
)

// unvouched says what of a client's new metadata an operator did not see who
// verified it with the old: another name, or a place that responses may go to; ""
// for nothing. A logo, a contact, another path of a host or port of a loopback
// address is not what they vouched for.
func unvouched(old, m *ClientMetadata) string {
	if old.ClientName != m.ClientName {
		return "the name changed"
	}
	for _, uri := range m.RedirectURIs {
		place := redirectPlace(uri)
		if !slices.ContainsFunc(old.RedirectURIs, func(o string) bool { return redirectPlace(o) == place }) {
			return "responses may go to " + place
		}
	}
	return ""
}

// redirectPlace is scheme and host of a web redirect URI; a private-use one has
// no host, and stands for itself.
func redirectPlace(uri string) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	if scheme != "https" && scheme != "http" {
		return uri
	}
	authority, _ := splitAuthority(rest)
	host, _, _ := splitPort(authority)
	return scheme + "://" + strings.ToLower(host)
}
