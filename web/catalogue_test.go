package web_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/web"
	"github.com/ostiary-auth/ostiary/web/webtest"
)

func templates(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("templates/*.html")
	if err != nil || len(files) == 0 {
		t.Fatalf("templates: %v, %v", files, err)
	}
	out := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[f] = string(b)
	}
	return out
}

func english(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("locales/en.json")
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]string
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// usedKeys are the keys that templates and Go code name, and those they build.
func usedKeys(t *testing.T) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	add := func(function, key string) {
		if function == "plural" {
			used[key+".one"], used[key+".other"] = true, true
			return
		}
		used[key] = true
	}
	call := regexp.MustCompile(`\b(t|text|plural) "([\w.]+)"`)
	for _, body := range templates(t) {
		for _, m := range call.FindAllStringSubmatch(body, -1) {
			add(m[1], m[2])
		}
	}
	source, err := os.ReadFile("funcs.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`catalogue(?:\.(html|text|plural)\(|\[)"([\w.]+)"`).FindAllStringSubmatch(string(source), -1) {
		add(m[1], m[2])
	}
	for _, c := range webtest.ErrorCases() {
		for _, part := range []string{"title", "text", "advice1"} {
			used["error."+string(c)+"."+part] = true
		}
	}
	for _, key := range []string{web.ProblemField, web.ProblemEmail, web.ProblemEmailTaken, web.ProblemName,
		web.ProblemPasswordShort, web.ProblemPasswordLong, web.ProblemURL, web.ProblemURLTaken} {
		used[key] = true
	}
	return used
}

func TestCatalogueKeys(t *testing.T) {
	t.Parallel()
	keys, used := english(t), usedKeys(t)
	for key := range used {
		if _, ok := keys[key]; !ok {
			t.Errorf("en.json lacks %q", key)
		}
	}
	optional := regexp.MustCompile(`^error\.(\w+)\.advice[23]$`)
	for key := range keys {
		if m := optional.FindStringSubmatch(key); m != nil && used["error."+m[1]+".title"] {
			continue
		}
		if !used[key] {
			t.Errorf("en.json has %q, which nothing uses", key)
		}
	}
}

func TestCatalogueTexts(t *testing.T) {
	t.Parallel()
	keys := english(t)
	placeholder := regexp.MustCompile(`\{(\w*)\}`)
	for key, s := range keys {
		if strings.TrimSpace(s) == "" || strings.ContainsAny(s, "<>&\n'\"") {
			t.Errorf("%s: %q is empty, has markup, or a straight quotation mark", key, s)
		}
		if strings.Contains(s, "!") {
			t.Errorf("%s has an exclamation mark", key)
		}
		if rest := placeholder.ReplaceAllString(s, ""); strings.ContainsAny(rest, "{}") {
			t.Errorf("%s: %q has a broken placeholder", key, s)
		}
		if one, ok := strings.CutSuffix(key, ".one"); ok {
			other := keys[one+".other"]
			for _, m := range placeholder.FindAllStringSubmatch(other, -1) {
				if m[1] != "n" && !strings.Contains(s, m[0]) {
					t.Errorf("%s lacks the placeholder %s of its plural", key, m[0])
				}
			}
		}
	}
}

// TestPlainWords keeps our trade's words off the pages (pages.md §1.5).
func TestPlainWords(t *testing.T) {
	t.Parallel()
	jargon := regexp.MustCompile(`(?i)\b(scope|grant|authoriz\w*|idp|oauth|token)\b`)
	for key, s := range english(t) {
		if strings.HasPrefix(key, "details.") {
			continue
		}
		if m := jargon.FindString(s); m != "" {
			t.Errorf("%s says %q: %s", key, m, s)
		}
	}
}
