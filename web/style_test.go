package web_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func styleSheet(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("static/style.css")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestStyleSheetSize(t *testing.T) {
	t.Parallel()
	if n := len(styleSheet(t)); n >= 16000 {
		t.Errorf("style.css has %d bytes, want fewer than 16,000", n)
	}
}

// themes returns the colour tokens of the light and the dark theme.
func themes(t *testing.T) map[string]map[string]string {
	t.Helper()
	css := styleSheet(t)
	blocks := regexp.MustCompile(`:root\{([^}]*)\}`).FindAllStringSubmatch(css, -1)
	if len(blocks) != 2 {
		t.Fatalf("style.css has %d :root blocks, want light and dark", len(blocks))
	}
	token := regexp.MustCompile(`--([\w-]+):(#[0-9a-f]{3,6});`)
	out := map[string]map[string]string{}
	for i, name := range []string{"light", "dark"} {
		out[name] = map[string]string{}
		for _, m := range token.FindAllStringSubmatch(blocks[i][1], -1) {
			out[name][m[1]] = m[2]
		}
	}
	return out
}

// luminance is the relative luminance of WCAG 2.2.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	hex = strings.TrimPrefix(hex, "#")
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	var l float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatalf("colour %q: %v", hex, err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		l += weight * c
	}
	return l
}

// TestContrast computes WCAG 1.4.3 (text, 4.5:1) and 1.4.11 (borders of
// controls, 3:1) for every pair of tokens that meet on a page.
func TestContrast(t *testing.T) {
	t.Parallel()
	for theme, tokens := range themes(t) {
		for _, tt := range []struct {
			front, back string
			least       float64
		}{
			{"ink", "bg", 4.5}, {"ink", "card", 4.5}, {"ink", "sunk", 4.5}, {"ink", "tint", 4.5},
			{"soft", "bg", 4.5}, {"soft", "card", 4.5}, {"soft", "sunk", 4.5},
			{"act", "bg", 4.5}, {"act", "card", 4.5}, {"act2", "card", 4.5}, {"act2", "bg", 4.5},
			{"on", "act", 4.5}, {"on", "act2", 4.5},
			{"warn", "warn-bg", 4.5}, {"ink", "warn-bg", 4.5}, {"bad", "bad-bg", 4.5}, {"ink", "bad-bg", 4.5}, {"bad", "card", 4.5},
			{"ok", "ok-bg", 4.5}, {"ink", "ok-bg", 4.5},
			{"edge", "card", 3}, {"edge", "bg", 3}, {"ring", "card", 3}, {"ring", "bg", 3}, {"bad", "bg", 3},
		} {
			a, b := luminance(t, tokens[tt.front]), luminance(t, tokens[tt.back])
			if got := (math.Max(a, b) + 0.05) / (math.Min(a, b) + 0.05); got < tt.least {
				t.Errorf("%s: %s on %s has contrast %.2f, want %.1f", theme, tt.front, tt.back, got, tt.least)
			}
		}
	}
}

// TestClassesExist finds a class of a template that the style sheet does not know.
func TestClassesExist(t *testing.T) {
	t.Parallel()
	css := styleSheet(t)
	for file, body := range templates(t) {
		body = regexp.MustCompile(`\{\{.*?\}\}`).ReplaceAllString(body, " ")
		for _, m := range regexp.MustCompile(`class="([^"]*)"`).FindAllStringSubmatch(body, -1) {
			for _, class := range strings.Fields(m[1]) {
				if !regexp.MustCompile(`\.` + class + `\b`).MatchString(css) {
					t.Errorf("%s: class %q is not in style.css", file, class)
				}
			}
		}
	}
}
