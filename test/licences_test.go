package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// NOTICE names every module in the binary whose licence asks that people are told
// where its source is (MPL-2.0 §3.2), and none whose licence asks for more is there.
func TestNoticeNamesModules(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}", "./cmd/ostiary")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^- (\S+)`).FindAllStringSubmatch(readDoc(t, "NOTICE"), -1) {
		named[m[1]] = true
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		path, dir, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || seen[path] {
			continue
		}
		seen[path] = true
		text := licence(t, path, dir)
		if strings.Contains(text, "GNU GENERAL PUBLIC") || strings.Contains(text, "GNU AFFERO") {
			t.Errorf("%s is under a licence of GNU: it cannot be part of the binary", path)
		}
		if mozilla := strings.Contains(text, "Mozilla Public License"); mozilla != named[path] {
			t.Errorf("%s is under the MPL: %t, named in NOTICE: %t", path, mozilla, named[path])
		}
		delete(named, path)
	}
	if len(seen) < 20 || len(named) > 0 {
		t.Errorf("%d modules; NOTICE names %v, which are not in the binary", len(seen), named)
	}
}

// licence returns the beginning of a module's licence.
func licence(t *testing.T, path, dir string) string {
	t.Helper()
	for _, pattern := range []string{"LICEN[CS]E*", "[Ll]icen[cs]e*", "COPYING*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) > 0 {
			b, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			return string(b[:min(len(b), 2000)])
		}
	}
	t.Errorf("%s has no licence", path)
	return ""
}
