// Package printable makes foreign texts fit for a terminal, a log and a report:
// whatever could move a cursor, change colours, run commands of the terminal or turn
// the direction of reading is written as its number. What is printable stays as it is,
// so that doing it twice does no harm.
package printable

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns a text of several lines; tabs and line feeds stay.
func Text(s string) string { return escape(s, "\n\t", len(s)*longest) }

// Line returns what should be one line, of limit bytes and an ellipsis at most.
func Line(s string, limit int) string { return escape(s, "", limit) }

// Whole is Line for what is worth nothing when its end is missing: a token, an address
// to open, a command to copy. Who makes it bounds it.
func Whole(s string) string { return escape(s, "", len(s)*longest) }

// longest is how many bytes one byte can become: a control, as \u{1b}.
const longest = 6

func escape(s, keep string, limit int) string {
	var b strings.Builder
	for i, r := range s {
		piece := escaped(s[i:], r, keep)
		if b.Len()+len(piece) > limit {
			b.WriteString("…")
			break
		}
		b.WriteString(piece)
	}
	return b.String()
}

// escaped is what is written of r, with which s begins.
func escaped(s string, r rune, keep string) string {
	switch {
	case r == utf8.RuneError && !strings.HasPrefix(s, string(utf8.RuneError)):
		return fmt.Sprintf(`\x%02x`, s[0]) // not UTF-8
	case unicode.IsPrint(r), strings.ContainsRune(keep, r):
		return s[:utf8.RuneLen(r)]
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	}
	return fmt.Sprintf(`\u{%x}`, r)
}

// JSON returns JSON that means the same: what does not print can only stand inside its
// strings, where \u is an escape.
func JSON(data []byte) string {
	var b strings.Builder
	for _, r := range string(data) {
		switch {
		case unicode.IsPrint(r), r == '\n', r == '\t', r == '\r': // of JSON's own spaces
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// JSONWriter writes to W what JSON makes of it. Each Write is given whole values, as
// json.Encoder does.
type JSONWriter struct{ W io.Writer }

// Write implements io.Writer.
func (j JSONWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(j.W, JSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
