package web

import (
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// NewHost splits the host of a URL for a host plate: the registrable domain is
// bold; an IP address, localhost and a name without public suffix are bold
// whole. Names outside ASCII appear in their punycode form, so that a look-alike
// letter cannot pass for another. It never fails: what is no host is shown as
// far as it can be read, and nothing is bold then. The letters themselves are in
// Letters, for pages that show both.
func NewHost(rawURL string) Host {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		return Host{Before: printable(rawURL)}
	}
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	after := ""
	if port := u.Port(); port != "" {
		after = ":" + port
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		if addr.Is6() {
			name = "[" + name + "]"
		}
		return Host{Bold: printable(name), After: after}
	}
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil {
		return Host{Before: printable(name), After: after}
	}
	h := Host{Bold: ascii, After: after, Letters: lettersOf(ascii)}
	if domain, err := publicsuffix.EffectiveTLDPlusOne(ascii); err == nil {
		h.Before, h.Bold = strings.TrimSuffix(ascii, domain), domain
	}
	return h
}

// lettersOf returns a punycode name in its letters, "" for any other name.
func lettersOf(ascii string) string {
	if name, err := idna.Lookup.ToUnicode(ascii); err == nil && name != ascii {
		return name
	}
	return ""
}

// String returns the whole host.
func (h Host) String() string { return h.Before + h.Bold + h.After }

// Name returns the host without its port.
func (h Host) Name() string { return h.Before + h.Bold }

// printable shows bytes that are no host: visible ASCII alone, at most 255.
func printable(s string) string {
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < 255; i++ {
		if c := s[i]; c > 0x20 && c < 0x7f {
			b.WriteByte(c)
		}
	}
	return b.String()
}
