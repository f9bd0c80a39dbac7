package test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// clientRules is how many rules of what clients need ("A" rules) there are. What
// each says stands beside the code that keeps it.
const clientRules = 38

var (
	// ruleInFunc finds A17 and A18 in TestA17_A18_ClientAuthentication and in
	// TestD8_A32_Window.
	ruleInFunc = regexp.MustCompile(`(?:^Test|_)A(\d+)(?:_|[A-Z]|$)`)
	// idsInName are the ids with which the name of a subtest begins: "RU-08 A8 A9 the
	// port of a loopback URI is free".
	idsInName  = regexp.MustCompile(`^(?:(?:[A-Z]{1,3}-?\d+) )+`)
	ruleInName = regexp.MustCompile(`\bA(\d+)\b`)
)

// Every rule is shown by a test function or a subtest that bears its name; a
// mention in a comment or in a message is none.
func TestClientRulesHaveTests(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	walk(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		collectRules(file, found)
	})
	for n := range clientRules {
		if rule := strconv.Itoa(n + 1); !found[rule] {
			t.Errorf("rule A%s is named by no test", rule)
		}
	}
	for rule := range found {
		if n, err := strconv.Atoi(rule); err != nil || n < 1 || n > clientRules {
			t.Errorf("a test names A%s, which is no rule", rule)
		}
	}
}

// collectRules notes the rules that a file's tests bear in their names.
func collectRules(file *ast.File, found map[string]bool) {
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		// an underscore ends one id and begins the next
		for _, m := range ruleInFunc.FindAllStringSubmatch(strings.ReplaceAll(fn.Name.Name, "_", "__"), -1) {
			found[m[1]] = true
		}
		collectSubtests(fn.Body, found)
	}
}

// collectSubtests notes the rules in the string literals that can be names of
// subtests: those of tables and of calls, but not what a test prints.
func collectSubtests(body ast.Node, found map[string]bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && prints(call) {
			return false
		}
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			name, err := strconv.Unquote(lit.Value)
			if err != nil {
				return true
			}
			for _, m := range ruleInName.FindAllStringSubmatch(idsInName.FindString(name), -1) {
				found[m[1]] = true
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
func TestClientRulesPatterns(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`func TestA17_A18_X() {}`:                                 "map[17:true 18:true]",
		`func TestD8_A32_X() {}`:                                  "map[32:true]",
		`func TestA2Handler() {}`:                                 "map[2:true]",
		`func TestX() { t.Run("RU-08 A8 A9 the port", nil) }`:     "map[8:true 9:true]",
		`func TestX() { _ = []string{"A21 database away"} }`:      "map[21:true]",
		`func TestX() { t.Errorf("A21 database away") }`:          "map[]",
		`func TestX() { _ = "the database is away (A21)" /*A5*/}`: "map[]",
		`func TestRSA256_X() {}`:                                  "map[]",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\n"+src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		collectRules(file, found)
		if got := fmt.Sprint(found); got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
	}
}
