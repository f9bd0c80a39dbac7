package registration

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.mau.fi/util/confusable"
	"golang.org/x/text/unicode/norm"
)

// Likeness says what about a client can be mistaken for something else. The zero
// Likeness is a client like no other.
type Likeness struct {
	// Of is the app whose name it has or nearly has, "" for none.
	Of string
	// MixedName says that a word of its name mixes alphabets, so that it reads as
	// another word.
	MixedName bool
	// Host is its host, when that can be mistaken for another one: its own site, or
	// where its responses go; "" for none.
	Host string
}

// Name reports whether the name can be mistaken for another.
func (l Likeness) Name() bool { return l.Of != "" || l.MixedName }

// Identity is what people take a client for, and so all that another one is
// compared with.
type Identity struct {
	ID   string
	Kind Kind
	// Name is the display name.
	Name         string
	RedirectURIs []string
	// Trusted is as Client.Trusted.
	Trusted   bool
	CreatedAt time.Time
}

// Identity returns what people take the client for.
func (c *Client) Identity() Identity {
	return Identity{ID: c.ID, Kind: c.Kind, Name: c.DisplayName(), RedirectURIs: c.Metadata.RedirectURIs, Trusted: c.Trusted(), CreatedAt: c.CreatedAt}
}

// LooksLike compares a client, as it is used at redirectURI, with the apps in
// wide use and with other clients of this server (DR-11, CI-19). The operator's
// own clients look like nobody. Among unverified ones the later is the look-alike:
// else whoever copies a name would put a warning on the app that has it.
func (c *Client) LooksLike(redirectURI string, others []Identity) Likeness {
	if c.Trusted() {
		return Likeness{}
	}
	own := c.Identity()
	l := Likeness{MixedName: mixesAlphabets(own.Name), Host: own.deceptiveHost(redirectURI, others)}
	if own.Name != "" {
		l.Of = own.resembles(own.siteAt(redirectURI), others)
	}
	return l
}

// resembles returns the name of the app that the client's can be mistaken for.
func (c *Identity) resembles(site string, others []Identity) string {
	mine := shapeOf(c.Name)
	for _, app := range knownApps {
		if slices.Contains(app.sites, site) {
			continue
		}
		known := shapeOf(app.name)
		// An app on a computer has no site to compare, and bears its own name.
		if own := site == "" && mine.same(known); !own && mine.alike(known) {
			return app.name
		}
	}
	for i := range others {
		o := &others[i]
		if o.ID == c.ID || o.isSite(site) || !o.Trusted && !o.wasBefore(c) {
			continue
		}
		other := shapeOf(o.Name)
		if own := site == "" && !o.Trusted && mine.same(other); !own && mine.alike(other) {
			return o.Name
		}
	}
	return ""
}

// wasBefore reports whether o was known here earlier than c.
func (c *Identity) wasBefore(other *Identity) bool {
	return cmp.Or(c.CreatedAt.Compare(other.CreatedAt), cmp.Compare(c.ID, other.ID)) < 0
}

// siteAt is the site that the client can be said to come from when its response
// goes to redirectURI: that of its document, or where the response goes; "" for
// an app on a computer, which cannot prove where it is from.
func (c *Identity) siteAt(redirectURI string) string {
	switch {
	case c.Kind == KindCIMD:
		return site(c.ID)
	case isHTTPS(redirectURI):
		return site(redirectURI)
	}
	return ""
}

// isSite reports whether the client comes from the site.
func (c *Identity) isSite(s string) bool {
	return s != "" && slices.ContainsFunc(c.RedirectURIs, func(uri string) bool { return c.siteAt(uri) == s })
}

// deceptiveHost returns the host of the client, or of redirectURI, that can be
// mistaken for another: one in punycode, and one that imitates the site of an app
// in wide use or of a client that the operator vouches for.
func (c *Identity) deceptiveHost(redirectURI string, others []Identity) string {
	var urls []string
	if c.Kind == KindCIMD {
		urls = append(urls, c.ID)
	}
	if isHTTPS(redirectURI) {
		urls = append(urls, redirectURI)
	}
	for _, u := range urls {
		if host := hostOf(u); isPunycode(host) || imitates(host, site(u), others) {
			return host
		}
	}
	return ""
}

// isPunycode reports whether a host has letters outside ASCII, which are written
// in punycode (RFC 3492).
func isPunycode(host string) bool { return strings.Contains("."+host, ".xn--") }

// imitates reports whether a host stands in front of somebody else's domain with
// a known site's name, as claude.ai.evil.example, or is on a site that reads like
// a known one, as c1aude.ai.
func imitates(host, own string, others []Identity) bool {
	deceives := func(known string) bool {
		return known != "" && known != own && (strings.Contains("."+host, "."+known+".") || shapeOf(own).confusable(shapeOf(known)))
	}
	for _, app := range knownApps {
		if slices.ContainsFunc(app.sites, deceives) {
			return true
		}
	}
	return slices.ContainsFunc(others, func(o Identity) bool {
		return o.Trusted && slices.ContainsFunc(o.RedirectURIs, func(uri string) bool { return deceives(o.siteAt(uri)) })
	})
}

// minTypo is the length from which one wrong letter makes a look-alike: a shorter
// name is often another name.
const minTypo = 6

// shape is what of a name people compare.
type shape struct {
	// letters are those of the name, whatever its case, spaces and punctuation.
	letters string
	// looks are how the letters look (UTS 39), as they are and in lower case: the
	// skeleton of "I" is "l", that of "i" is "i".
	looks [2]string
}

func shapeOf(name string) shape {
	return shape{letters: letters(name),
		looks: [2]string{letters(confusable.Skeleton(name)), letters(confusable.Skeleton(strings.ToLower(name)))}}
}

// same reports whether both have the same letters.
func (s shape) same(o shape) bool { return s.letters != "" && s.letters == o.letters }

// confusable reports whether both look the same.
func (s shape) confusable(o shape) bool {
	return slices.ContainsFunc(s.looks[:], func(look string) bool { return look != "" && slices.Contains(o.looks[:], look) })
}

// alike reports whether people can take one for the other: the same letters,
// letters that look the same, or one letter wrong.
func (s shape) alike(o shape) bool {
	if s.same(o) || s.confusable(o) {
		return true
	}
	return min(len(s.letters), len(o.letters)) >= minTypo && oneTypo([]rune(s.letters), []rune(o.letters))
}

// letters returns the letters and digits of s in lower case, accents left out.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, norm.NFKD.String(s))
}

// oneTypo reports whether a becomes b by one letter more, less or other, or by
// two neighbours that change places.
func oneTypo(a, b []rune) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	restA, restB := a[i:], b[i:]
	switch {
	case len(b)-len(a) > 1 || len(restB) == 0:
		return false
	case len(b) > len(a):
		return slices.Equal(restA, restB[1:])
	case slices.Equal(restA[1:], restB[1:]):
		return true
	}
	return len(restA) > 1 && restA[0] == restB[1] && restA[1] == restB[0] && slices.Equal(restA[2:], restB[2:])
}

// alphabets share letters that look alike. Other scripts go together in one word,
// as those of Japanese do, or look like nothing else.
var alphabets = [...]*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee,
	unicode.Coptic, unicode.Lisu, unicode.Deseret}

// mixesAlphabets reports whether a word of the name has letters of two alphabets.
func mixesAlphabets(name string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }), func(word string) bool {
		n := 0
		for _, table := range alphabets {
			if strings.IndexFunc(word, func(r rune) bool { return unicode.Is(table, r) }) >= 0 {
				n++
			}
		}
		return n > 1
	})
}
