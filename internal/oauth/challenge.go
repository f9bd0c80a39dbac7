package oauth

import "strings"

// Challenge builds one WWW-Authenticate value (RFC 6750 §3, RFC 9728 §5.1).
// Params keep their order; every value is quoted; values are ASCII, and a quote
// or backslash is escaped, so no value can end the string early (JW-30).
type Challenge struct {
	// Scheme is the authentication scheme, "Bearer" or "Basic".
	Scheme string
	// Params are name and value pairs; an empty value is left out.
	Params [][2]string
}

// String returns the header's value.
func (c Challenge) String() string {
	var b strings.Builder
	b.WriteString(c.Scheme)
	sep := " "
	for _, p := range c.Params {
		if p[1] == "" {
			continue
		}
		b.WriteString(sep)
		b.WriteString(p[0])
		b.WriteString(`="`)
		for i := range len(p[1]) {
			ch := p[1][i]
			if ch < 0x20 || ch > 0x7e {
				continue
			}
			if ch == '"' || ch == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(ch)
		}
		b.WriteByte('"')
		sep = ", "
	}
	return b.String()
}
