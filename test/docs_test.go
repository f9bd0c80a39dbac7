package test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readDoc returns a file of this module.
func readDoc(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// walk calls fn for each file of the module that is ours.
func walk(t *testing.T, fn func(path string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case !d.IsDir():
			fn(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// testSources returns the test files' text by the name of their folder.
func testSources(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	walk(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Base(filepath.Dir(path))
		sources[folder] += string(b)
	})
	return sources
}

// named finds `package.TestName/part of a subtest's name`.
var named = regexp.MustCompile("`([a-z]+)\\.((?:Test|Fuzz)\\w+)(?:/([^`]+))?`")

// Every test that docs/rfc.md and docs/threat-model.md name exists.
func TestRFCNamesTests(t *testing.T) {
	t.Parallel()
	sources := testSources(t)
	for _, doc := range []string{"docs/rfc.md", "docs/threat-model.md"} {
		found := named.FindAllStringSubmatch(readDoc(t, doc), -1)
		if len(found) < 20 {
			t.Errorf("%s names %d tests: is the pattern still right?", doc, len(found))
		}
		for _, m := range found {
			source := sources[m[1]]
			if !strings.Contains(source, "func "+m[2]+"(") {
				t.Errorf("%s: there is no %s in %s", doc, m[2], m[1])
			} else if !strings.Contains(source, m[3]) {
				t.Errorf("%s: %s.%s has no part %q", doc, m[1], m[2], m[3])
			}
		}
	}
}

// Each row of docs/rfc.md says kept, diverged or not yet, and a row that says
// kept names a test or points to where it is kept.
func TestRFCRows(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(readDoc(t, "docs/rfc.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.HasPrefix(line, "| ") || line[2] < '1' || line[2] > '9' {
			continue
		}
		switch status := strings.TrimSpace(cells[1]); {
		case status != "kept" && status != "diverged" && status != "not yet":
			t.Errorf("status %q in %s", status, line)
		case status == "kept" && !named.MatchString(cells[2]) && !strings.Contains(cells[2], "](#"):
			t.Errorf("kept, but no test is named: %s", line)
		case strings.TrimSpace(cells[2]) == "":
			t.Errorf("no reason: %s", line)
		}
	}
}

// Files that docs/architecture.md names exist, those of its RFC table above all.
func TestArchitectureNamesFiles(t *testing.T) {
	t.Parallel()
	text := readDoc(t, "docs/architecture.md")
	files := regexp.MustCompile("`([a-z][\\w/]*/[\\w.]+\\.(?:go|sql|json))`").FindAllStringSubmatch(text, -1)
	if len(files) < 30 {
		t.Errorf("it names %d files: is the pattern still right?", len(files))
	}
	for _, m := range files {
		if strings.Contains(m[1], "<") {
			continue
		}
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Errorf("docs/architecture.md names %s: %v", m[1], err)
		}
	}
	if _, table, ok := strings.Cut(text, "## Which file is which RFC"); !ok || strings.Count(table, "\n| ") < 10 {
		t.Error("the table of RFCs is gone")
	}
}

// Links between our pages lead somewhere.
func TestLinksOfDocuments(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	walk(t, func(path string) {
		if filepath.Ext(path) != ".md" {
			return
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s leads to %s, which is not there", path, m[1])
			}
		}
	})
}

// docs/adr/0003 has a row for each module that go.mod requires directly, and for
// no other; go.mod calls direct what our code imports (go mod tidy).
func TestDependenciesHaveReasons(t *testing.T) {
	t.Parallel()
	imports := map[string]bool{}
	importLine := regexp.MustCompile(`(?m)^\s+(?:[\w.]+ )?"([^"\s]+)"$|^import (?:[\w.]+ )?"([^"\s]+)"$`)
	walk(t, func(path string) {
		if filepath.Ext(path) != ".go" {
			return
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range importLine.FindAllStringSubmatch(string(b), -1) {
			imports[m[1]+m[2]] = true
		}
	})
	required := regexp.MustCompile(`(?m)^\t(\S+) v\S+( // indirect)?$`).FindAllStringSubmatch(readDoc(t, "go.mod"), -1)
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(readDoc(t, "docs/adr/0003-dependencies.md"), -1)
	var have, want []string
	for _, m := range rows {
		have = append(have, m[1])
	}
	for _, m := range required {
		module, direct := m[1], m[2] == ""
		imported := slices.ContainsFunc(slices.Collect(maps.Keys(imports)), func(path string) bool {
			return path == module || strings.HasPrefix(path, module+"/")
		})
		if direct != imported {
			t.Errorf("go.mod says %s is direct: %t, imported: %t; run go mod tidy", module, direct, imported)
		}
		if direct {
			want = append(want, module)
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("rows for\n%q\nbut go.mod and the code have\n%q", have, want)
	}
}

// docs/operate.md lists every event that the code writes, and no other.
func TestEventsAreListed(t *testing.T) {
	t.Parallel()
	const kinds = `(?:audit|authorization|client|clock|config|consent|database|grant|key|request|resource|server|session|tls|token|user)\.[a-z_]+`
	literal := regexp.MustCompile(`"(` + kinds + `)"`)
	written := map[string]bool{}
	walk(t, func(path string) {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, filepath.Join("..", "test")) {
			return
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range literal.FindAllStringSubmatch(string(b), -1) {
			written[m[1]] = true
		}
	})
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("`("+kinds+")`").FindAllStringSubmatch(readDoc(t, "docs/operate.md"), -1) {
		listed[m[1]] = true
		if !written[m[1]] {
			t.Errorf("docs/operate.md lists %s, which nothing writes", m[1])
		}
	}
	for name := range written {
		if !listed[name] {
			t.Errorf("docs/operate.md does not list %s", name)
		}
	}
}
