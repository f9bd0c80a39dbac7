package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// idInFunc finds JW-31 and M8 in TestJW31_M8_FailsClosed, and A32 in
	// TestD8_A32_Window.
	idInFunc = regexp.MustCompile(`(?:^Test|_)([A-Z]{1,2}?)(\d+)(?:_|[A-Z]|$)`)
	// idsInName are the ids with which the name of a subtest begins: "RU-08 A8 A9 the
	// port of a loopback URI is free".
	idsInName = regexp.MustCompile(`^(?:(?:[A-Z]{1,3}-?\d+) )+`)
)

// namedIDs returns the ids of attacks and rules that tests bear in their names, in
// the folders of that name; "" is all. A mention in a comment or in a message is
// none.
func namedIDs(t *testing.T, folder string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	walk(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") || folder != "" && !strings.Contains(path, "/"+folder+"/") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		collectIDs(file, found)
	})
	return found
}

// collectIDs notes the ids that a file's tests and their subtests bear in their names.
func collectIDs(file *ast.File, found map[string]bool) {
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		// an underscore ends one id and begins the next
		for _, m := range idInFunc.FindAllStringSubmatch(strings.ReplaceAll(fn.Name.Name, "_", "__"), -1) {
			dash := "-"
			if len(m[1]) == 1 {
				dash = ""
			}
			found[m[1]+dash+m[2]] = true
		}
		collectSubtests(fn.Body, found)
	}
}

// collectSubtests notes the ids in the string literals that can be names of
// subtests: those of tables and of calls, but not what a test prints.
func collectSubtests(body ast.Node, found map[string]bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && prints(call) {
			return false
		}
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			name, _ := strconv.Unquote(lit.Value) // "" when it is none
			for _, id := range strings.Fields(idsInName.FindString(name)) {
				found[id] = true
			}
		}
		return true
	})
}

// prints reports a call like t.Errorf, whose text may mention any rule.
func prints(call *ast.CallExpr) bool {
	fn, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	for _, verb := range []string{"Error", "Fatal", "Log", "Print", "Sprint"} {
		if strings.HasPrefix(fn.Sel.Name, verb) {
			return true
		}
	}
	return false
}

// The patterns tell names from mentions.
func TestNamePatterns(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`func TestJW31_M8_X() {}`:                                 "JW-31 M8",
		`func TestM9_X() {}`:                                      "M9",
		`func TestA17_A18_X() {}`:                                 "A17 A18",
		`func TestD8_A32_X() {}`:                                  "A32 D8",
		`func TestA2Handler() {}`:                                 "A2",
		`func TestX() { t.Run("JW-02 M1 two headers", nil) }`:     "JW-02 M1",
		`func TestX() { t.Run("JW-27 "+name, nil) }`:              "JW-27",
		`func TestX() { t.Run("RU-08 A8 A9 the port", nil) }`:     "A8 A9 RU-08",
		`func TestX() { _ = []string{"A21 database away"} }`:      "A21",
		`func TestX() { t.Errorf("A21 database away") }`:          "",
		`func TestX() { t.Errorf("JW-02 two headers") }`:          "",
		`func TestX() { _ = "two headers (JW-02)" }`:              "",
		`func TestX() { _ = "the database is away (A21)" /*A5*/}`: "",
		`func TestRSA256_X() {}`:                                  "",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\n"+src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		collectIDs(file, found)
		if got := strings.Join(slices.Sorted(maps.Keys(found)), " "); got != want {
			t.Errorf("%s: found %q, want %q", src, got, want)
		}
	}
}
