package registration

import (
	"strings"
	"unicode"

	"github.com/ostiary-auth/ostiary/web"
	"golang.org/x/text/unicode/norm"
)

// maxDisplayName is how much of a client's name people see (pages.md §1).
const maxDisplayName = 60

// NormalizeName returns a client's claimed name as it may be stored and shown:
// NFC, one line, at most 60 characters, without control, bidi-override and
// zero-width characters (DR-11). It still is a claim.
func NormalizeName(name string) string { return cleanText(name, maxDisplayName) }

// cleanText returns s in NFC, on one line, without invisible characters, and at
// most limit characters long.
func cleanText(s string, limit int) string {
	s = strings.Map(visible, norm.NFC.String(strings.ToValidUTF8(s, "")))
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > limit {
		s = strings.TrimSpace(string(runes[:limit-1])) + "…"
	}
	return s
}

// visible maps a rune to itself, a line break or other space to a space, and
// what has no width or turns the direction of the text to nothing.
func visible(r rune) rune {
	switch {
	case unicode.IsSpace(r), r == '\u2800': // U+2800 is a blank Braille pattern
		return ' '
	case unicode.In(r, unicode.C, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector),
		r == unicode.ReplacementChar:
		return -1
	}
	return r
}

// DisplayName returns the client's name as it is shown, "" when it has none;
// pages put it in quotation marks.
func (c *Client) DisplayName() string { return NormalizeName(c.Metadata.ClientName) }

// Describe returns the client as pages show it: its claimed name, or its
// client_id when it has none, and how far it is known.
func Describe(c *Client) web.Client {
	d := web.Client{Name: c.DisplayName(), Tag: web.TagNotVerified}
	if d.Name == "" {
		d.Name, d.Unnamed = NormalizeName(c.ID), true
	}
	if c.Trusted() {
		d.Tag = web.TagVerified
	}
	return d
}

// DescribeOrigin returns the host plate of a client's metadata document; ok is
// false for a client that has none.
func DescribeOrigin(c *Client) (host web.Host, ok bool) {
	if c.Kind != KindCIMD {
		return web.Host{}, false
	}
	return web.NewHost(c.ID), true
}

// DescribeRedirect says where a registered redirect URI leads: what kind of
// place, its host plate, and for a private-use URI its scheme.
func DescribeRedirect(uri string) (goes web.Destination, host web.Host, scheme string) {
	scheme, _, _ = strings.Cut(uri, ":")
	switch {
	case IsLoopbackRedirect(uri):
		return web.DestinationLoopback, web.NewHost(uri), ""
	case scheme == "https":
		return web.DestinationWebsite, web.NewHost(uri), ""
	}
	return web.DestinationApp, web.Host{Bold: scheme + ":"}, scheme
}
