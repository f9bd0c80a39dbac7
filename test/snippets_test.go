package test

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// shown are the packages that documents speak of.
var shown = map[string]string{"resourceserver": "resourceserver", "mcpsdk": "resourceserver/mcpsdk", "mcpgo": "resourceserver/mcpgo",
	"authclient": "authclient", "filestore": "authclient/filestore", "keyringstore": "authclient/keyringstore"}

// What documents show of Go is formatted, names nothing that is not there, and
// compiles where it is a program.
func TestSnippetsOfDocuments(t *testing.T) {
	t.Parallel()
	exported := map[string]map[string][]string{}
	for name, folder := range shown {
		exported[name] = exportedOf(t, folder)
	}
	snippets, programs := 0, 0
	for _, doc := range []string{"README.md", "docs/protect-an-mcp-server.md", "docs/authorization-servers.md", "docs/gateway.md",
		"docs/call-an-mcp-server.md"} {
		if _, err := os.Stat(filepath.Join("..", doc)); err != nil {
			continue // TestLinksOfDocuments knows which must be there
		}
		for _, m := range goBlock.FindAllStringSubmatch(readDoc(t, doc), -1) {
			snippets++
			file := parseSnippet(t, doc, m[1])
			if file == nil {
				continue
			}
			checkNames(t, doc, file, exported)
			if strings.HasPrefix(m[1], "package main") {
				programs++
				compile(t, doc, m[1])
			}
		}
	}
	if snippets < 14 || programs < 2 {
		t.Errorf("%d snippets, %d of them programs: is the pattern still right?", snippets, programs)
	}
}

// parseSnippet reads a program, or statements of one.
func parseSnippet(t *testing.T, doc, text string) *ast.File {
	t.Helper()
	if formatted, err := format.Source([]byte(text)); err != nil || string(formatted) != text {
		t.Errorf("%s: gofmt (%v) would change\n%s\nto\n%s", doc, err, text, formatted)
	}
	if !strings.HasPrefix(text, "package ") {
		text = "package p\nfunc _() {\n" + text + "}\n"
	}
	file, err := parser.ParseFile(token.NewFileSet(), doc, text, parser.SkipObjectResolution)
	if err != nil {
		t.Errorf("%s: %v in\n%s", doc, err, text)
		return nil
	}
	return file
}

// checkNames wants each name of our packages to be there, and each field of their
// structs. Composite literals without a type of their own take it from the slice
// or map around them.
func checkNames(t *testing.T, doc string, file *ast.File, exported map[string]map[string][]string) {
	t.Helper()
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if pkg, name := selector(n); exported[pkg] != nil && exported[pkg][name] == nil {
				t.Errorf("%s: there is no %s.%s", doc, pkg, name)
			}
		case *ast.CompositeLit:
			checkFields(t, doc, n, n.Type, exported)
		}
		return true
	})
}

func checkFields(t *testing.T, doc string, lit *ast.CompositeLit, typ ast.Expr, exported map[string]map[string][]string) {
	t.Helper()
	var elem, key ast.Expr
	switch typ := typ.(type) {
	case *ast.ArrayType:
		elem = typ.Elt
	case *ast.MapType:
		key, elem = typ.Key, typ.Value
	}
	pkg, name := selector(typ)
	fields := exported[pkg][name]
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok && fields != nil && !slices.Contains(fields, id.Name) {
				t.Errorf("%s: %s.%s has no field %s", doc, pkg, name, id.Name)
			}
			if inner, ok := kv.Key.(*ast.CompositeLit); ok && inner.Type == nil {
				checkFields(t, doc, inner, key, exported)
			}
			e = kv.Value
		}
		if inner, ok := e.(*ast.CompositeLit); ok && inner.Type == nil {
			checkFields(t, doc, inner, elem, exported)
		}
	}
}

// selector takes pkg.Name apart.
func selector(e ast.Expr) (pkg, name string) {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if id, ok := s.X.(*ast.Ident); ok {
			return id.Name, s.Sel.Name
		}
	}
	return "", ""
}

// exportedOf returns a package's exported names, with the fields of structs.
func exportedOf(t *testing.T, folder string) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	for _, p := range all(t) {
		if short(p.ImportPath) != folder {
			continue
		}
		d := parse(t, p)
		for _, f := range d.Funcs {
			names[f.Name] = []string{}
		}
		for _, v := range append(slices.Clone(d.Consts), d.Vars...) {
			for _, name := range v.Names {
				names[name] = []string{}
			}
		}
		for _, typ := range d.Types {
			names[typ.Name] = fieldsOf(typ.Decl)
			for _, f := range typ.Funcs {
				names[f.Name] = []string{}
			}
			for _, c := range typ.Consts {
				for _, name := range c.Names {
					names[name] = []string{}
				}
			}
		}
	}
	if len(names) == 0 {
		t.Errorf("%s exports nothing", folder)
	}
	return names
}

func fieldsOf(decl *ast.GenDecl) []string {
	fields := []string{}
	for _, spec := range decl.Specs {
		typ, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		if st, ok := typ.Type.(*ast.StructType); ok {
			for _, f := range st.Fields.List {
				for _, id := range f.Names {
					fields = append(fields, id.Name)
				}
			}
		}
	}
	return fields
}

func compile(t *testing.T, doc, program string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "vet", file)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", doc, err, out)
	}
}
