package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxLine bounds what is printed of a foreign text that should be one line, in bytes.
const maxLine = 1000

// terminalText makes a foreign text of several lines fit for a terminal: whatever
// could move the cursor, change colours, run commands of the terminal or turn the
// direction of reading is written as its number. Nothing of a server is printed
// without it, terminalLine, terminalWhole or terminalJSON.
func terminalText(s string) string { return escapeFor(s, "\n\t") }

// terminalLine is terminalText for what should be one line, and not a long one.
func terminalLine(s string) string {
	s = escapeFor(s, "")
	if len(s) <= maxLine {
		return s
	}
	cut := maxLine
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// terminalWhole is terminalLine for what is worth nothing when its end is missing: a
// token, an address to open, a command to copy. Who makes it bounds it.
func terminalWhole(s string) string { return escapeFor(s, "") }

func escapeFor(s, keep string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			_, _ = fmt.Fprintf(&b, `\x%02x`, s[i]) // not UTF-8
		case unicode.IsPrint(r), strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		default:
			_, _ = fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}

// terminalJSON does the same to JSON and leaves its meaning alone: what does not
// print can only stand inside its strings, where \u is an escape.
func terminalJSON(data []byte) string {
	var b strings.Builder
	for _, r := range string(data) {
		switch {
		case unicode.IsPrint(r), r == '\n', r == '\t', r == '\r': // of JSON's own spaces
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			_, _ = fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			_, _ = fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// jsonWriter writes JSON by terminalJSON. Each Write is given whole values, as
// json.Encoder does.
type jsonWriter struct{ w io.Writer }

// Write implements io.Writer.
func (j jsonWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(j.w, terminalJSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
