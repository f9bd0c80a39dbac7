package main

import (
	"strings"
	"testing"
	"unicode"
)

// Cells of tables are foreign, too: a client chooses its name.
func TestTableIsPrintable(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"colour": "\x1b[31mred\x1b[0m", "bidi": "\u202egnp.exe", "lines": "a\r\nb", "not UTF-8": "a\xff\x9bb"} {
		var b strings.Builder
		table(&b, []string{"NAME", "KIND"}, []string{text, "dynamic"})
		if strings.Count(b.String(), "\n") != 2 || strings.ContainsFunc(b.String(), func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }) {
			t.Errorf("%s: %q", name, b.String())
		}
	}
}
