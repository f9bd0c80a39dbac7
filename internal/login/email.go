package login

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ostiary-auth/ostiary/web"
	"golang.org/x/text/unicode/norm"
)

// Limits of what people type about themselves.
const (
	maxEmailBytes = 254 // RFC 5321 §4.5.3.1.3, less the angle brackets
	maxLocalBytes = 64  // RFC 5321 §4.5.3.1.1
	maxNameRunes  = 100
)

// Mistake is something wrong with what was typed, for a form and for the
// command line.
type Mistake struct {
	// Field is the form's field.
	Field string
	// Key is the catalogue's key of the sentence.
	Key string
	// Text is the sentence for the command line.
	Text string
}

// Error returns Text.
func (m *Mistake) Error() string { return m.Text }

// EmailKey is the form in which addresses are compared and unique: NFKC, lower
// case, without surrounding space. It is applied to whatever is typed at
// sign-in, so it never fails.
func EmailKey(email string) string {
	// lower-casing may compose anew, hence twice; NFKC may make space, hence trimmed last
	return strings.TrimSpace(norm.NFKC.String(strings.ToLower(norm.NFKC.String(strings.ToValidUTF8(email, "")))))
}

// CheckEmail returns a *Mistake unless email can be an address: something, one
// @, and a host. Whether mail arrives there is nobody's business here.
func CheckEmail(email string) error {
	if !isEmail(email) {
		return &Mistake{Field: "username", Key: web.ProblemEmail,
			Text: "the e-mail address must look like name@example.com"}
	}
	return nil
}

func isEmail(email string) bool {
	local, host, ok := strings.Cut(email, "@")
	switch {
	case !ok, local == "", len(local) > maxLocalBytes, len(email) > maxEmailBytes, !utf8.ValidString(email):
		return false
	case host == "", strings.HasPrefix(host, "."), strings.HasSuffix(host, "."), strings.Contains(host, ".."):
		return false
	}
	return !strings.ContainsFunc(email, isNoText) && !strings.ContainsAny(email, ` <>()[],;:"\`) && !strings.Contains(host, "@")
}

// CheckName returns a *Mistake for a name that cannot stand on a page.
func CheckName(name string) error {
	if utf8.RuneCountInString(name) > maxNameRunes || !utf8.ValidString(name) || strings.ContainsFunc(name, isNoText) {
		return &Mistake{Field: "name", Key: web.ProblemName,
			Text: "the name must be one line of at most 100 characters"}
	}
	return nil
}

// isNoText reports control, bidi-override and other invisible characters, and
// space other than the plain one.
func isNoText(r rune) bool {
	return r != ' ' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Co, unicode.Cs))
}
