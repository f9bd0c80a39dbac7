package doctor

import (
	"regexp"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/printable"
)

// maxText bounds a foreign text in a report, in bytes.
const maxText = 400

// secretish are the shapes of secrets that servers put into answers and URLs. The
// groups stay.
var secretish = []*regexp.Regexp{
	regexp.MustCompile(`(?i)((?:^|[?&#\s"'])(?:code|state|access_token|refresh_token|id_token|client_secret|registration_access_token|code_verifier|request|nonce)=)[^&\s"'#]+`),
	regexp.MustCompile(`(?i)("(?:code|access_token|refresh_token|id_token|client_secret|registration_access_token|initial_access_token)"\s*:\s*)"(?:[^"\\]|\\.)*"?`),
	regexp.MustCompile(`(?i)(\b(?:Bearer|Basic|DPoP)\s+)[A-Za-z0-9+/_~.-]{16,}={0,2}(\s|[,;]|$)`),
	regexp.MustCompile(`()\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,4}`),
	regexp.MustCompile(`(?i)((?:^|[\s;])(?:set-)?cookie:\s*[^=;\s]+=)[^;\s]+`),
}

// maxRead bounds what is searched for secrets of a foreign text, in bytes.
const maxRead = 16 << 10

// redactor takes secrets out of texts: those that this examination holds, by
// value, and what looks like one.
type redactor struct{ known []oauth.Secret }

// add remembers a secret; short ones would hide ordinary words.
func (r *redactor) add(secrets ...oauth.Secret) {
	for _, s := range secrets {
		if len(s) >= 8 {
			r.known = append(r.known, s)
		}
	}
}

// spaces puts what is several lines into one.
var spaces = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")

// clean makes a text of others fit for a report: without secrets, short, and
// without anything that a terminal or a reader could take for something else.
func (r *redactor) clean(s string) string {
	for _, known := range r.known {
		s = strings.ReplaceAll(s, known.Reveal(), "[redacted]")
	}
	whole := len(s) <= maxRead
	s = s[:min(len(s), maxRead)]
	for _, re := range secretish {
		s = re.ReplaceAllString(s, "${1}[redacted]${2}")
	}
	if !whole && len(s) <= maxText { // the end would be shown, and may be half a secret
		s = s[:strings.LastIndexAny(s, " \t\r\n\"',;&")+1]
	}
	return printable.Line(spaces.Replace(s), maxText)
}
