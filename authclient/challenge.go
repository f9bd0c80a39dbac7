package authclient

import (
	"net/http"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// challenge is what the Bearer and DPoP challenges of an answer ask for (RFC 6750
// §3, RFC 9728 §5.1, RFC 9449 §7.1).
type challenge struct {
	resourceMetadata string
	scopes           []string
	err              string
}

// readChallenge looks at every WWW-Authenticate header. What cannot be read is
// passed over: the server has refused in any case, and discovery goes on without.
func readChallenge(h http.Header) challenge {
	var c challenge
	for _, one := range parseChallenges(h.Values("WWW-Authenticate")) {
		if one.scheme != "bearer" && one.scheme != "dpop" {
			continue
		}
		if c.resourceMetadata == "" {
			c.resourceMetadata = one.params["resource_metadata"]
		}
		if c.err == "" {
			c.err = one.params["error"]
		}
		if scopes, err := oauth.ParseScope(one.params["scope"]); err == nil && len(c.scopes) == 0 {
			c.scopes = scopes
		}
	}
	return c
}

// authChallenge is one challenge (RFC 9110 §11.6.1), scheme and names in lower case.
type authChallenge struct {
	scheme  string
	token68 string
	params  map[string]string
}

// maxChallengeBytes bounds what is read of one header, maxChallenges of an answer.
const (
	maxChallengeBytes = 16 << 10
	maxChallenges     = 32
)

// parseChallenges reads the challenges of all headers, as far as each can be read.
// A challenge with a repeated parameter says two things, and is left out.
func parseChallenges(headers []string) []authChallenge {
	var list []authChallenge
	for _, h := range headers {
		if len(h) > maxChallengeBytes {
			continue
		}
		p := challengeParser{s: h}
		for len(list) < maxChallenges {
			c, ok := p.next()
			if !ok {
				break
			}
			if c.params != nil {
				list = append(list, c)
			}
		}
	}
	return list
}

// challengeParser reads one header value. Between challenges, and between the
// parameters of one, stands a comma; a word followed by "=" is a parameter, and any
// other begins the next challenge.
type challengeParser struct {
	s string
	i int
}

// next returns one challenge; its params are nil when it repeats one. false is the
// end, or what is none.
func (p *challengeParser) next() (authChallenge, bool) {
	p.skip(" \t,")
	scheme := p.token()
	if scheme == "" {
		return authChallenge{}, false
	}
	c := authChallenge{scheme: strings.ToLower(scheme), params: map[string]string{}}
	if p.i < len(p.s) && p.s[p.i] != ' ' && p.s[p.i] != '\t' && p.s[p.i] != ',' {
		return authChallenge{}, false
	}
	p.skip(" \t")
	if t, ok := p.token68(); ok {
		c.token68 = t
		return c, true
	}
	repeated := false
	for {
		name, value, ok := p.param()
		if !ok {
			break
		}
		if _, twice := c.params[name]; twice {
			repeated = true
		}
		c.params[name] = value
	}
	if repeated {
		c.params = nil
	}
	return c, true
}

// param reads name = value, or leaves the parser where the next challenge begins.
func (p *challengeParser) param() (name, value string, ok bool) {
	from := p.i
	p.skip(" \t,")
	name = strings.ToLower(p.token())
	p.skip(" \t")
	if name == "" || !p.take('=') {
		p.i = from
		return "", "", false
	}
	p.skip(" \t")
	if p.i < len(p.s) && p.s[p.i] == '"' {
		value, ok = p.quotedString()
	} else {
		value, ok = p.bare(), true
	}
	// a string without an end: nothing after it can be read
	return name, value, ok
}

// token68 reads one (RFC 9110 §11.2), which ends its challenge.
func (p *challengeParser) token68() (string, bool) {
	from, i := p.i, p.i
	for i < len(p.s) && isToken68(p.s[i]) {
		i++
	}
	if i == from {
		return "", false
	}
	for i < len(p.s) && p.s[i] == '=' {
		i++
	}
	end := i
	for i < len(p.s) && (p.s[i] == ' ' || p.s[i] == '\t') {
		i++
	}
	if i < len(p.s) && p.s[i] != ',' {
		return "", false
	}
	p.i = i
	return p.s[from:end], true
}

// quotedString reads one (RFC 9110 §5.6.4).
func (p *challengeParser) quotedString() (string, bool) {
	var b strings.Builder
	for i := p.i + 1; i < len(p.s); i++ {
		switch ch := p.s[i]; {
		case ch == '"':
			p.i = i + 1
			return b.String(), true
		case ch == '\\' && i+1 < len(p.s):
			i++
			b.WriteByte(p.s[i])
		default:
			b.WriteByte(ch)
		}
	}
	p.i = len(p.s)
	return "", false
}

// bare reads a value without quotes. It takes what a URL has besides a token's
// characters, since servers forget the quotes.
func (p *challengeParser) bare() string {
	from := p.i
	for p.i < len(p.s) && p.s[p.i] > ' ' && p.s[p.i] != ',' && p.s[p.i] != '"' && p.s[p.i] < 0x7f {
		p.i++
	}
	return p.s[from:p.i]
}

func (p *challengeParser) token() string {
	from := p.i
	for p.i < len(p.s) && isTokenChar(p.s[p.i]) {
		p.i++
	}
	return p.s[from:p.i]
}

func (p *challengeParser) skip(set string) {
	for p.i < len(p.s) && strings.IndexByte(set, p.s[p.i]) >= 0 {
		p.i++
	}
}

func (p *challengeParser) take(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// isTokenChar is tchar (RFC 9110 §5.6.2).
func isTokenChar(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

func isToken68(c byte) bool { return isAlphanumeric(c) || strings.IndexByte("-._~+/", c) >= 0 }
