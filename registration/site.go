package registration

import (
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// SameSite reports whether the hosts of two URLs are equal or belong to one
// registrable domain: whoever runs the one has a say over the other (D11, D32).
// Ports do not count. A URL without a host is on no site.
func SameSite(a, b string) bool {
	siteA := site(a)
	return siteA != "" && siteA == site(b)
}

// site returns the registrable domain of a URL's host; the host itself when it
// is an IP address or has no registrable domain, as localhost and a public
// suffix; "" for none.
func site(rawURL string) string {
	host := hostOf(rawURL)
	if _, err := netip.ParseAddr(host); err == nil {
		return host // not a name: 10.0.0.1 and 192.168.0.1 share no domain "0.1"
	}
	if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return domain
	}
	return host
}

// hostOf returns the host of a URL in lower case, without port and final dot.
func hostOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}

func isHTTPS(rawURL string) bool { return strings.HasPrefix(rawURL, "https://") }
