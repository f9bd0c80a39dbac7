package account

import "strings"

// token is a word in a User-Agent header and what it means to people.
type token struct{ in, name string }

// browsers, most particular first: nearly every browser claims to be Safari,
// and many to be Chrome.
func browsers() []token {
	return []token{{"Edg/", "Edge"}, {"EdgA/", "Edge"}, {"EdgiOS/", "Edge"}, {"OPR/", "Opera"},
		{"SamsungBrowser/", "Samsung Internet"}, {"Vivaldi/", "Vivaldi"}, {"FxiOS/", "Firefox"}, {"Firefox/", "Firefox"},
		{"CriOS/", "Chrome"}, {"HeadlessChrome/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}}
}

func systems() []token {
	return []token{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"CrOS", "ChromeOS"},
		{"Windows", "Windows"}, {"Macintosh", "macOS"}, {"Linux", "Linux"}}
}

// browserOf says in words which browser a User-Agent header names, as far as it
// does: "Firefox on Linux". It is what the browser claims.
func browserOf(userAgent string) string {
	browser, system := nameIn(browsers(), userAgent), nameIn(systems(), userAgent)
	switch {
	case browser == "" && system == "":
		return "A browser"
	case browser == "":
		return "A browser on " + system
	case system == "":
		return browser
	}
	return browser + " on " + system
}

func nameIn(tokens []token, userAgent string) string {
	for _, t := range tokens {
		if strings.Contains(userAgent, t.in) {
			return t.name
		}
	}
	return ""
}
