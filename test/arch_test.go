// Package test holds the rules of the house that no single package can keep:
// which package may import which, and that each is documented.
package test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/ostiary-auth/ostiary"

// listed is what the rules need of `go list -json`.
type listed struct {
	ImportPath string
	Name       string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
}

// packages lists the module's packages, test files left out.
var packages = sync.OnceValues(func() ([]listed, error) {
	cmd := exec.Command("go", "list", "-deps=false", "-json=ImportPath,Name,Dir,GoFiles,Imports,Deps", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var list []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		if len(p.GoFiles) > 0 {
			list = append(list, p)
		}
	}
})

func all(t *testing.T) []listed {
	t.Helper()
	list, err := packages()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return list
}

// short is the path inside the module; "" is a foreign package.
func short(importPath string) string {
	rest, ok := strings.CutPrefix(importPath, module+"/")
	if !ok {
		return ""
	}
	return rest
}

// layers of the house, from the ground up; a folder counts with all below it.
// An import goes to a lower layer, or to the same one where peers allows it.
var layers = [][]string{
	{"internal/oauth", "internal/printable", "internal/store", "internal/strictjson"},
	{"metadata", "migrations", "web", "internal/endpoint", "internal/grant", "internal/resource", "internal/flow",
		"internal/keys", "internal/config", "internal/obs", "internal/ratelimit", "internal/audit", "internal/netguard", "internal/jose"},
	{"registration", "consent", "internal/login", "internal/upstream", "resourceserver", "authclient"},
	{"authserver", "internal/account", "internal/console", "internal/gateway", "internal/doctor"},
	{"internal/sqlstore"},
	{"internal/app"},
	{"cmd", "test", "examples"},
}

// peers are the layers within which packages may import one another: the ground
// and the vocabulary above it, and what stands on everything.
var peers = map[int]bool{0: true, 1: true, 6: true}

// exceptions are the arrows between siblings, with their reason.
var exceptions = map[[2]string]string{
	{"consent", "registration"}:             "a consent names a client",
	{"internal/login", "internal/upstream"}: "sign-in asks the identity providers",
}

// layerOf returns the layer and the folder that places a package there.
func layerOf(path string) (int, string) {
	for i, folders := range layers {
		for _, folder := range folders {
			if path == folder || strings.HasPrefix(path, folder+"/") {
				return i, folder
			}
		}
	}
	return -1, ""
}

func TestImportsGoDown(t *testing.T) {
	t.Parallel()
	for _, p := range all(t) {
		from, folder := layerOf(short(p.ImportPath))
		if from < 0 {
			t.Errorf("%s stands in no layer: add it to layers", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			to, target := layerOf(short(imported))
			if short(imported) == "" || target == folder || to < from || to == from && peers[from] {
				continue
			}
			if _, ok := exceptions[[2]string{folder, target}]; !ok {
				t.Errorf("%s (layer %d) imports %s (layer %d)", short(p.ImportPath), from, short(imported), to)
			}
		}
	}
}

// only lists who alone may import a foreign module directly.
var only = map[string][]string{
	"github.com/ory/fosite":               {"authserver"},
	"github.com/jackc/pgx/v5":             {"internal/sqlstore", "test"},
	"modernc.org/sqlite":                  {"internal/sqlstore", "test"},
	"github.com/pressly/goose/v3":         {"migrations"},
	"github.com/lestrrat-go/jwx/v2":       {"internal/jose", "internal/keys", "authserver", "internal/gateway", "cmd", "test"},
	"github.com/gorilla/sessions":         {"internal/login"},
	"github.com/go-crypt/crypt":           {"internal/login"},
	"github.com/spf13/cobra":              {"cmd"},
	"github.com/spf13/pflag":              {"cmd"},
	"github.com/caarlos0/env/v11":         {"internal/config"},
	"go.yaml.in/yaml/v3":                  {"internal/config", "internal/gateway"},
	"go.mau.fi/util":                      {"registration"},
	"github.com/prometheus/client_golang": {"internal/obs"},
	"github.com/throttled/throttled/v2":   {"internal/ratelimit"},
	"code.dny.dev/ssrf":                   {"internal/netguard"},
	"github.com/chromedp/cdproto":         {"test"},
	"github.com/chromedp/chromedp":        {"test"},
	"github.com/gofrs/flock":              {"authclient"},
	"github.com/zalando/go-keyring":       {"authclient/keyringstore"},
	"golang.org/x/oauth2":                 {"authclient", "test"},
	"github.com/mark3labs/mcp-go":         {"resourceserver/mcpgo", "examples", "test"},
	module + "/internal/config":           {"internal/app", "cmd", "test"},
}

func TestForeignModulesStayInTheirPackage(t *testing.T) {
	t.Parallel()
	for _, p := range all(t) {
		for _, imported := range p.Imports {
			for foreign, owners := range only {
				if imported != foreign && !strings.HasPrefix(imported, foreign+"/") || within(p.ImportPath, owners) {
					continue
				}
				t.Errorf("%s imports %s, which belongs to %v", short(p.ImportPath), imported, owners)
			}
		}
	}
}

func within(importPath string, folders []string) bool {
	path := short(importPath)
	return slices.ContainsFunc(folders, func(f string) bool { return path == f || strings.HasPrefix(path, f+"/") })
}

// A program that imports only the middleware must not compile the server.
func TestMiddlewareIsLight(t *testing.T) {
	t.Parallel()
	seen := false
	for _, p := range all(t) {
		if !within(p.ImportPath, []string{"resourceserver", "authclient", "metadata"}) || short(p.ImportPath) == "resourceserver/mcpgo" {
			continue // mcp-go itself compiles templates and database/sql/driver, by cast and uuid
		}
		seen = seen || short(p.ImportPath) == "resourceserver"
		for _, dep := range heavy(p.Deps) {
			t.Errorf("%s reaches %s", short(p.ImportPath), dep)
		}
	}
	if !seen {
		t.Error("resourceserver was not looked at")
	}
	// The authorization server is heavy: a rule that finds nothing there finds nothing.
	for _, p := range all(t) {
		if short(p.ImportPath) != "internal/app" {
			continue
		}
		found := strings.Join(heavy(p.Deps), " ")
		for _, want := range []string{"github.com/ory/fosite", "github.com/jackc/pgx", "modernc.org/sqlite", "database/sql", "html/template", "/registration"} {
			if !strings.Contains(found, want) {
				t.Errorf("%s is not found heavy in %s", want, short(p.ImportPath))
			}
		}
	}
}

// heavy returns those of deps that a program with the middleware alone must not have.
func heavy(deps []string) (found []string) {
	for _, dep := range deps {
		for _, prefix := range []string{"github.com/ory/", "github.com/jackc/", "modernc.org/", "github.com/pressly/goose", "database/sql",
			"html/template", "text/template", module + "/web", module + "/migrations", module + "/authserver",
			module + "/internal/sqlstore", module + "/internal/config", module + "/registration"} {
			if strings.HasPrefix(dep, prefix) {
				found = append(found, dep)
			}
		}
	}
	return found
}

// Each SDK is compiled by who uses it: the middleware alone brings none, and one
// adapter not the other's.
func TestAdaptersAreApart(t *testing.T) {
	t.Parallel()
	goSDK, mcpGo := "github.com/modelcontextprotocol/go-sdk/", "github.com/mark3labs/mcp-go/"
	brings := map[string][]string{"resourceserver": nil, "resourceserver/mcpsdk": {goSDK}, "resourceserver/mcpgo": {mcpGo},
		"authclient": nil, "authclient/filestore": nil, "authclient/keyringstore": nil, "authclient/mcpsdk": {goSDK}}
	for _, p := range all(t) {
		allowed, ok := brings[short(p.ImportPath)]
		if !ok {
			continue
		}
		delete(brings, short(p.ImportPath))
		for _, sdk := range []string{goSDK, mcpGo} {
			reaches := slices.ContainsFunc(p.Deps, func(dep string) bool { return strings.HasPrefix(dep, sdk) })
			if reaches != slices.Contains(allowed, sdk) {
				t.Errorf("%s reaches %s: %t", short(p.ImportPath), sdk, reaches)
			}
		}
	}
	if len(brings) > 0 {
		t.Errorf("not looked at: %v", brings)
	}
}

// A program with the client library compiles two foreign modules: the types of
// x/oauth2, and the addresses that are not talked to.
func TestClientLibraryIsLight(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range all(t) {
		if short(p.ImportPath) != "authclient" {
			continue
		}
		for _, dep := range p.Deps {
			first, _, _ := strings.Cut(dep, "/")
			if short(dep) != "" || !strings.Contains(first, ".") || first == "vendor" {
				continue
			}
			if !strings.HasPrefix(dep, "golang.org/x/oauth2") && dep != "code.dny.dev/ssrf" {
				t.Errorf("authclient reaches %s", dep)
			}
			seen[first] = true
		}
	}
	if !seen["golang.org"] || !seen["code.dny.dev"] {
		t.Errorf("found %v only", seen)
	}
}

func TestVocabularyIsStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	for _, p := range all(t) {
		if layer, _ := layerOf(short(p.ImportPath)); layer != 0 {
			continue
		}
		for _, dep := range p.Deps {
			first, _, _ := strings.Cut(dep, "/")
			if short(dep) == "" && strings.Contains(first, ".") {
				t.Errorf("%s reaches %s", short(p.ImportPath), dep)
			}
		}
	}
}

// Each package has a comment that says what it owns, and each exported name one
// that begins with the name.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	for _, p := range all(t) {
		t.Run(short(p.ImportPath), func(t *testing.T) {
			t.Parallel()
			d := parse(t, p)
			if len(strings.Fields(d.Doc)) < 6 {
				t.Errorf("package comment %q does not say what the package owns", d.Doc)
			}
			if p.Name == "main" {
				return
			}
			for _, v := range append(slices.Clone(d.Consts), d.Vars...) {
				checkValues(t, v)
			}
			checkFuncs(t, "", d.Funcs)
			for _, typ := range d.Types {
				checkComment(t, typ.Name, typ.Doc)
				checkFuncs(t, "", typ.Funcs)
				checkFuncs(t, typ.Name+".", typ.Methods)
				for _, v := range append(slices.Clone(typ.Consts), typ.Vars...) {
					checkValues(t, v)
				}
			}
		})
	}
}

func parse(t *testing.T, p listed) *doc.Package {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	d, err := doc.NewFromFiles(fset, files, p.ImportPath)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// checkValues wants a comment for a group of constants or variables, or for
// each exported one of it.
func checkValues(t *testing.T, v *doc.Value) {
	t.Helper()
	if v.Doc != "" || !slices.ContainsFunc(v.Names, token.IsExported) {
		return
	}
	for _, spec := range v.Decl.Specs {
		s := spec.(*ast.ValueSpec)
		if slices.ContainsFunc(s.Names, func(n *ast.Ident) bool { return n.IsExported() }) && s.Doc.Text() == "" && s.Comment.Text() == "" {
			t.Errorf("%s has no comment", s.Names[0])
		}
	}
}

func checkFuncs(t *testing.T, prefix string, list []*doc.Func) {
	t.Helper()
	for _, f := range list {
		if token.IsExported(f.Name) {
			checkComment(t, prefix+f.Name, f.Doc)
		}
	}
}

func checkComment(t *testing.T, name, text string) {
	t.Helper()
	bare := name[strings.LastIndex(name, ".")+1:]
	if !token.IsExported(bare) {
		return
	}
	words := strings.Fields(text)
	for len(words) > 1 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
		words = words[1:]
	}
	if len(words) == 0 || strings.Trim(words[0], ",.:") != bare {
		t.Errorf("%s: its comment does not begin with its name: %.60q", name, text)
	}
}
