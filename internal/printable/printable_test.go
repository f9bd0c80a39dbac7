package printable

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

const limit = 1000

// hostile are texts that do something to a terminal or its reader.
var hostile = map[string]string{
	"colour":           "\x1b[31mred\x1b[0m",
	"title":            "\x1b]0;title\a",
	"clipboard":        "\x1b]52;c;cm0gLXJmIC8=\x07",
	"eight-bit CSI":    "\u009b31m",
	"backspace":        "safe\b\b\b\bevil",
	"carriage return":  "evil\rgood",
	"bidi override":    "\u202egnp.exe",
	"bidi isolate":     "\u2066x\u2069",
	"zero width":       "ad\u200bmin",
	"tag characters":   "\U000e0041\U000e0042",
	"line separator":   "a\u2028b",
	"not UTF-8":        "a\xff\x9bb",
	"NUL and delete":   "a\x00b\x7f",
	"byte order mark":  "\ufeffx",
	"soft hyphen":      "a\u00adb",
	"private use":      "\ue000",
	"not a character":  "\uffff",
	"device attribute": "\x1bP+q544e\x1b\\",
}

func TestText(t *testing.T) {
	t.Parallel()
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for what, got := range map[string]string{"text": Text(text), "line": Line(text, limit)} {
				if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || got == text {
					t.Errorf("%s %q becomes %q", what, text, got)
				}
			}
		})
	}
	for text, want := range map[string]string{
		"Zürich 東京 🙂\n\tindented": "Zürich 東京 🙂\n\tindented",
		"\ufffd":                  "\ufffd",
		"a\xffb":                  `a\xffb`,
		"\u202e":                  `\u{202e}`,
		"a\r\nb":                  "a\\r\nb",
	} {
		if got := Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	if got := Line("a\nb\tc", limit); got != `a\nb\tc` {
		t.Errorf("a line with breaks = %q", got)
	}
	long := Line(strings.Repeat("é", limit), limit)
	if len(long) > limit+len("…") || !strings.HasSuffix(long, "é…") {
		t.Errorf("a long line has %d bytes and ends with %q", len(long), long[len(long)-8:])
	}
}

// JSON means the same afterwards.
func TestJSON(t *testing.T) {
	t.Parallel()
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			enc := json.NewEncoder(JSONWriter{&b})
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "\t")
			if err := enc.Encode(map[string]any{text: []string{text, "x"}}); err != nil {
				t.Fatal(err)
			}
			got := b.String()
			if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }) {
				t.Errorf("%q is printed as %q", text, got)
			}
			var back map[string][]string
			want := strings.ToValidUTF8(text, "\ufffd") // as json.Marshal does, one for each byte or run of them
			if err := json.Unmarshal([]byte(got), &back); err != nil || len(back) != 1 {
				t.Fatalf("%s: %v", got, err)
			}
			for key, values := range back {
				if strings.ReplaceAll(key, "\ufffd\ufffd", "\ufffd") != want || values[0] != key {
					t.Errorf("%q came back as %q", text, key)
				}
			}
		})
	}
}

func FuzzPrintable(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Add(strings.Repeat("x", limit-1) + "\U00065089") // the limit lies within an escape
	f.Fuzz(func(t *testing.T, text string) {
		if got := Text(text); strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }) {
			t.Errorf("text %q", got)
		}
		if got := Line(text, limit); strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || len(got) > limit+len("…") {
			t.Errorf("line %q", got)
		}
		if got := Whole(text); strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || len(got) < len(text) {
			t.Errorf("whole %q", got)
		}
		data, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var want, back string
		got := JSON(data)
		if json.Unmarshal(data, &want) != nil || json.Unmarshal([]byte(got), &back) != nil || back != want {
			t.Errorf("JSON %s became %s", data, got)
		}
	})
}
