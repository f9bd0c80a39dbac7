package registration

import (
	"math"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Bounds of a secret that an earlier system made.
const (
	minImportedSecret  = 32
	maxImportedSecret  = 256
	importedSecretBits = 96
)

// CheckImportedSecret judges a client secret that the operator brings from an
// earlier system: 32 to 256 visible ASCII characters that look random. Secrets
// are stored under a fast hash, and nobody counts guesses at a stolen database
// (D16), so a secret that a person thought of is refused: one with too few
// different characters, repetitions, sequences or walks over a keyboard (less than
// 96 bits by secretBits), one of a single kind of character, or one that reads
// like words.
func CheckImportedSecret(secret oauth.Secret) error {
	s := secret.Reveal()
	hidden := func(r rune) bool { return r < '!' || r > '~' }
	switch {
	case len(s) < minImportedSecret || len(s) > maxImportedSecret:
		return oauth.InvalidClientMetadata("an imported secret must have %d to %d characters; it has %d", minImportedSecret, maxImportedSecret, len(s))
	case strings.ContainsFunc(s, hidden):
		// RFC 6749 §A.2 has the space too, which copying loses
		return oauth.InvalidClientMetadata("an imported secret must consist of visible ASCII characters, without space")
	case secretBits(s) < importedSecretBits:
		return oauth.InvalidClientMetadata("an imported secret must look random; this one repeats itself, follows the keyboard or uses few characters (%d bits by our estimate, %d are needed)",
			int(secretBits(s)), importedSecretBits)
	case kinds(s) < 2:
		return oauth.InvalidClientMetadata("an imported secret must look random; this one has no letters, or letters of one case and nothing else")
	case readsLikeWords(s):
		return oauth.InvalidClientMetadata("an imported secret must look random; this one reads like words")
	}
	return nil
}

// importSecret gives a new client the secret that it had elsewhere.
func importSecret(c *Client, secret oauth.Secret) error {
	if !c.UsesSecret() {
		return oauth.InvalidClientMetadata("a client that authenticates with %s has no secret", c.Metadata.TokenEndpointAuthMethod)
	}
	if err := CheckImportedSecret(secret); err != nil {
		return err
	}
	c.SecretHash = HashSecret(c.ID, secret)
	return nil
}

// secretBits estimates how much chance is in s: each character counts as one of
// those that occur in s, but for characters that go on a sequence (abc, 321,
// aaa, asdf) or repeat three or more that came before.
func secretBits(s string) float64 {
	each := math.Log2(float64(len(distinct(s))))
	bits := 0.0
	for i := 0; i < len(s); {
		if n := repeated(s, i); n >= 3 {
			i += n
			continue
		}
		if !continues(s, i) {
			bits += each
		}
		i++
	}
	return bits
}

func distinct(s string) []byte {
	b := []byte(s)
	slices.Sort(b)
	return slices.Compact(b)
}

// repeated returns how many characters from i on occurred before, in a row.
func repeated(s string, i int) (longest int) {
	for n := 3; i+n <= len(s) && strings.Contains(s[:i+n-1], s[i:i+n]); n++ {
		longest = n
	}
	return longest
}

// continues reports whether character i goes on where the two before it lead: by
// one up, one down or not at all, or along a keyboard.
func continues(s string, i int) bool {
	if i < 2 {
		return false
	}
	step := int(s[i]) - int(s[i-1])
	return step == int(s[i-1])-int(s[i-2]) && step >= -1 && step <= 1 || isWalk(strings.ToLower(s[i-2:i+1]))
}

// keyboardWalks are the ways over a keyboard that people take: its rows, with the
// digits once more as they are shifted, and its columns. The rows end where the
// next begins, as the finger does; QWERTZ and AZERTY have rows of their own.
const keyboardWalks = "1234567890-= qwertyuiopasdfghjklzxcvbnm qwertyuiop[] asdfghjkl;' zxcvbnm,./ qwertzuiopasdfghjklyxcvbnm " +
	"azertyuiopqsdfghjklmwxcvbn !@#$%^&*()_+ 1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.0p;/ 1qay2wsx3edc4rfv5tgb6zhn7ujm"

// isWalk reports whether s follows a keyboard, forwards or backwards.
func isWalk(s string) bool {
	back := []byte(s)
	slices.Reverse(back)
	return strings.Contains(keyboardWalks, s) || strings.Contains(keyboardWalks, string(back))
}

// kinds counts which of small letters, capitals and other characters s has.
func kinds(s string) (n int) {
	small, large := s != strings.ToUpper(s), s != strings.ToLower(s)
	other := strings.ContainsFunc(s, func(r rune) bool { return r < 'A' || r > 'Z' && r < 'a' || r > 'z' })
	for _, has := range []bool{small, large, other} {
		if has {
			n++
		}
	}
	return n
}

// commonPairs are the letter pairs of which words mostly consist: more than half
// of the pairs in a text, an eighth of those in random letters.
const commonPairs = "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le " +
	"ve co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il " +
	"tr ly nc et ut ss so rs un lo"

// readsLikeWords reports whether letters follow one another as they do in words.
func readsLikeWords(s string) bool {
	s = strings.ToLower(s)
	pairs, common := 0, 0
	for i := range len(s) - 1 {
		if !isLetter(s[i]) || !isLetter(s[i+1]) {
			continue
		}
		pairs++
		if strings.Contains(commonPairs, s[i:i+2]) {
			common++
		}
	}
	return pairs >= 12 && 2*common >= pairs
}

func isLetter(b byte) bool { return b >= 'a' && b <= 'z' }
