package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// protectedBy lists, by folder, the attacks and the rules for middleware (M) and for clients (C) that a
// test in it must bear in its name. What each says stands beside the code that keeps
// it; a case of several folders is kept in each of them.
var protectedBy = map[string][]string{
	"resourceserver": {
		"JW-01", "JW-02", "JW-03", "JW-04", "JW-05", "JW-07", "JW-08", "JW-11", "JW-13", "JW-14", "JW-15", "JW-16", "JW-18",
		"JW-20", "JW-21", "JW-22", "JW-23", "JW-24", "JW-25", "JW-26", "JW-27", "JW-28", "JW-29", "JW-30", "JW-31", "JW-32",
		"IR-01", "IR-02", "IR-03", "IR-10", "SC-09", "AU-07", "AU-09", "MM-02", "MM-04", "RT-12",
		"M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "M9",
	},
	"authclient": {"MM-07", "MM-09", "MM-10", "MM-11", "MM-12", "MM-13", "MM-14", "MM-16",
		"C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10"},
	"authserver": {"IR-01", "IR-02", "IR-03", "IR-04", "IR-05", "IR-07", "IR-08", "IR-09", "IR-10", "AU-07", "AU-08", "AU-09", "CI-22"},
}

var (
	// idInFunc finds JW-31 and M8 in TestJW31_M8_FailsClosed.
	idInFunc = regexp.MustCompile(`(?:^Test|_)([A-Z]{1,2}?)(\d+)(?:_|[A-Z]|$)`)
	oneID    = regexp.MustCompile(`[A-Z]{1,3}-?\d+`)
)

func TestAttacksHaveTests(t *testing.T) {
	t.Parallel()
	found := map[string]map[string]bool{}
	walk(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for folder := range protectedBy {
			if strings.Contains(path, "/"+folder+"/") {
				if found[folder] == nil {
					found[folder] = map[string]bool{}
				}
				collectIDs(file, found[folder])
			}
		}
	})
	for folder, ids := range protectedBy {
		for _, id := range ids {
			if !found[folder][id] {
				t.Errorf("%s is named by no test of %s", id, folder)
			}
		}
	}
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
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && prints(call) {
				return false
			}
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				name, _ := strconv.Unquote(lit.Value)
				for _, id := range oneID.FindAllString(idsInName.FindString(name), -1) {
					found[id] = true
				}
			}
			return true
		})
	}
}

// The patterns tell names from mentions.
func TestAttacksPatterns(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`func TestJW31_M8_X() {}`:                             "JW-31 M8",
		`func TestM9_X() {}`:                                  "M9",
		`func TestX() { t.Run("JW-02 M1 two headers", nil) }`: "JW-02 M1",
		`func TestX() { t.Run("JW-27 "+name, nil) }`:          "JW-27",
		`func TestX() { t.Errorf("JW-02 two headers") }`:      "",
		`func TestX() { _ = "two headers (JW-02)" }`:          "",
		`func TestRSA256_X() {}`:                              "",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\n"+src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		collectIDs(file, found)
		for _, id := range strings.Fields(want) {
			if !found[id] {
				t.Errorf("%s: %s is not found in %v", src, id, found)
			}
		}
		if len(found) != len(strings.Fields(want)) {
			t.Errorf("%s: found %v, want %q", src, found, want)
		}
	}
}
