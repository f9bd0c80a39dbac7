package config_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/config"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

const reference = "../../docs/configuration.md"

const referenceHead = `# Configuration

Made from internal/config/config.go by ` + "`make docs`" + `: edit the comments there.

Nothing needs to be configured to try ostiary. A setting is taken from, the later winning: its default, the YAML
file named by ` + "`--config`" + ` or ` + "`OSTIARY_CONFIG`" + `, its environment variable, its flag. In environment variables
and flags the items of a list are separated by commas. Durations are written ` + "`90s`, `10m`, `720h`" + `.

` + "`ostiary config check`" + ` reports every mistake at once; ` + "`ostiary config print`" + ` shows each value and where it
came from, with secrets left out. A key or an ` + "`OSTIARY_*`" + ` variable that ostiary does not know is a mistake; an
empty variable counts as not set.

`

// docs/configuration.md says what the comments of Config say.
func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	want := referenceHead + describe(t)
	if *update {
		if err := os.WriteFile(reference, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/configuration.md is not current; run make docs (-want +got):\n%s", diff)
	}
}

func describe(t *testing.T) string {
	t.Helper()
	comments := fieldComments(t)
	defaults := map[string]string{}
	for _, v := range config.Default().Values() {
		defaults[v.Key] = v.Text
	}
	delete(defaults, "database") // depends on state_dir; its comment tells
	var b strings.Builder
	for _, f := range config.Fields() {
		text := comments[f.Name]
		if !strings.HasPrefix(text, f.Name+" ") {
			t.Errorf("the comment of Config.%s does not begin with its name: %q", f.Name, text)
		}
		fmt.Fprintf(&b, "## %s\n`%s`", f.Key, f.Env)
		if d := defaults[f.Key]; d != "" {
			fmt.Fprintf(&b, " · default `%s`", d)
		}
		fmt.Fprintf(&b, "\n\n%s\n\n", strings.Replace(text, f.Name, "`"+f.Key+"`", 1))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// fieldComments reads the doc comments of Config's fields.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Config" {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			for _, name := range f.Names {
				comments[name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
			}
		}
		return false
	})
	return comments
}
