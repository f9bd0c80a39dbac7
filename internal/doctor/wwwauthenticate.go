package doctor

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// challenge is one of WWW-Authenticate (RFC 9110 §11.6.1).
type challenge struct {
	scheme string
	params map[string]string // by their names in lower case
}

// errChallenge is what a strict client says of a header that it cannot parse.
var errChallenge = errors.New("the header does not follow RFC 9110 §11.6.1")

// maxChallenges bounds the work that one header can ask for.
const maxChallenges = 32

// parseChallenges reads one value of WWW-Authenticate, strictly: a list of
// challenges, each a scheme with parameters or a token68.
func parseChallenges(value string) ([]challenge, error) {
	var list []challenge
	s := scanner{rest: value}
	for s.skipCommas(); s.rest != ""; s.skipCommas() {
		if len(list) == maxChallenges {
			return nil, fmt.Errorf("%w: more than %d challenges", errChallenge, maxChallenges)
		}
		scheme := s.token()
		if scheme == "" {
			return nil, fmt.Errorf("%w: no scheme at %q", errChallenge, first(s.rest))
		}
		c := challenge{scheme: scheme, params: map[string]string{}}
		if err := s.params(c.params); err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: it is empty", errChallenge)
	}
	return list, nil
}

func first(s string) string { return s[:min(len(s), 20)] }

// scanner takes a header apart from its left.
type scanner struct{ rest string }

func (s *scanner) skip(chars string) { s.rest = strings.TrimLeft(s.rest, chars) }

func (s *scanner) skipCommas() { s.skip(", \t") }

// token takes a token (RFC 9110 §5.6.2).
func (s *scanner) token() string {
	n := strings.IndexFunc(s.rest, func(r rune) bool { return !isTokenChar(r) })
	if n < 0 {
		n = len(s.rest)
	}
	t := s.rest[:n]
	s.rest = s.rest[n:]
	return t
}

func isTokenChar(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// token68 is what Negotiate and others have in place of parameters.
var token68 = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*[ \t]*(?:,|$)`)

// params takes the parameters of a challenge: name=value pairs between commas,
// until a name follows that has no value, which is the next scheme.
func (s *scanner) params(into map[string]string) error {
	s.skip(" \t")
	if m := token68.FindString(s.rest); m != "" {
		s.rest = s.rest[len(m):]
		return nil
	}
	for {
		mark := s.rest
		s.skipCommas()
		name := strings.ToLower(s.token())
		s.skip(" \t")
		if name == "" && s.rest == "" {
			return nil
		}
		if !strings.HasPrefix(s.rest, "=") {
			s.rest = mark
			if name == "" {
				return fmt.Errorf("%w: a parameter is expected at %q", errChallenge, first(mark))
			}
			return nil // the next scheme
		}
		s.rest = s.rest[1:]
		s.skip(" \t")
		value, err := s.value()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, twice := into[name]; twice {
			return fmt.Errorf("%w: %s stands there twice", errChallenge, name)
		}
		into[name] = value
		if s.skip(" \t"); s.rest != "" && s.rest[0] != ',' {
			return fmt.Errorf("%w: a comma is missing before %q", errChallenge, first(s.rest))
		}
	}
}

// value takes a token or a quoted string (RFC 9110 §5.6.4).
func (s *scanner) value() (string, error) {
	if !strings.HasPrefix(s.rest, `"`) {
		if v := s.token(); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("%w: no value at %q", errChallenge, first(s.rest))
	}
	var b strings.Builder
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return b.String(), nil
		case c == '\\' && i+1 < len(s.rest):
			i++
			b.WriteByte(s.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("%w: a quoted value does not end", errChallenge)
}
