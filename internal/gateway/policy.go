package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/resourceserver"
)

// maxPolicy bounds a policy file and each file that it names, in bytes.
const maxPolicy = 1 << 20

// PolicyError is everything wrong with a policy file, one line each, with the
// number of its line in the file.
type PolicyError struct{ lines []string }

// Error returns the lines.
func (e *PolicyError) Error() string { return strings.Join(e.lines, "\n") }

// Hint says where the form of the file is described.
func (e *PolicyError) Hint() string { return "docs/gateway.md has an example with every setting" }

// policy is the file as it is written.
type policy struct {
	Issuers     []policyIssuer `yaml:"issuers"`
	Tools       scopeTable     `yaml:"tools"`
	Prompts     scopeTable     `yaml:"prompts"`
	Resources   scopeTable     `yaml:"resources"`
	Methods     scopeTable     `yaml:"methods"`
	Default     *scopeList     `yaml:"default"`
	Implies     scopeTable     `yaml:"implies"`
	FilterLists bool           `yaml:"filter_lists"`
}

type policyIssuer struct {
	Issuer         string               `yaml:"issuer"`
	Profile        string               `yaml:"profile"`
	Algorithms     []string             `yaml:"algorithms"`
	JWKSURI        string               `yaml:"jwks_uri"`
	JWKSFile       string               `yaml:"jwks_file"`
	AllowAudiences []string             `yaml:"allow_audiences"`
	ScopeClaims    []string             `yaml:"scope_claims"`
	ScopePrefix    string               `yaml:"scope_prefix"`
	Introspection  *policyIntrospection `yaml:"introspection"`
	line           int
}

type policyIntrospection struct {
	Endpoint         string        `yaml:"endpoint"`
	ClientID         string        `yaml:"client_id"`
	ClientSecretFile string        `yaml:"client_secret_file"`
	BearerTokenFile  string        `yaml:"bearer_token_file"`
	AlsoJWT          bool          `yaml:"also_jwt"`
	TokenPrefix      string        `yaml:"token_prefix"`
	MaxAge           time.Duration `yaml:"max_age"`
}

// UnmarshalYAML keeps the line, for mistakes that are found later. Unknown keys are
// looked for here, since a decoder's strictness ends at a method such as this.
func (p *policyIssuer) UnmarshalYAML(n *yaml.Node) error {
	type plain policyIssuer
	var v plain
	if err := decodeStrictly(n, &v); err != nil {
		return err
	}
	*p = policyIssuer(v)
	p.line = n.Line
	return nil
}

// UnmarshalYAML refuses unknown keys, as above.
func (p *policyIntrospection) UnmarshalYAML(n *yaml.Node) error {
	type plain policyIntrospection
	return decodeStrictly(n, (*plain)(p))
}

// scopeTable is a mapping from names to lists of scopes, with its lines.
type scopeTable []scopeEntry

type scopeEntry struct {
	name   string
	scopes []string
	line   int
}

// UnmarshalYAML reads the mapping in the order of the file.
func (t *scopeTable) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return lineError(n, "this must be a mapping: name: [scope, …]")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		e := scopeEntry{name: key.Value, line: key.Line, scopes: []string{}}
		if key.Kind != yaml.ScalarNode || key.Value == "" || seen[key.Value] {
			return lineError(key, fmt.Sprintf("%q is not a name, or is there twice", key.Value))
		}
		seen[key.Value] = true
		var list scopeList
		if err := list.read(value, key.Value); err != nil {
			return err
		}
		e.scopes = append(e.scopes, list...)
		*t = append(*t, e)
	}
	return nil
}

// scopeList is a list of scopes.
type scopeList []string

// UnmarshalYAML reads the list of default.
func (l *scopeList) UnmarshalYAML(n *yaml.Node) error { return l.read(n, "default") }

func (l *scopeList) read(n *yaml.Node, name string) error {
	if n.Kind != yaml.SequenceNode || n.Decode((*[]string)(l)) != nil {
		return lineError(n, name+" needs a list of scopes in brackets; [] lets every valid token do it")
	}
	if bad := slices.IndexFunc(*l, isNoScope); bad >= 0 {
		return lineError(n, fmt.Sprintf("%q is not a scope; write one scope an element, without spaces", (*l)[bad]))
	}
	return nil
}

func isNoScope(s string) bool { return !oauth.IsScopeToken(s) }

func lineError(n *yaml.Node, text string) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %s", n.Line, text)}}
}

// decodeStrictly is Node.Decode that refuses unknown keys.
func decodeStrictly(n *yaml.Node, v any) error {
	known := yamlKeys(v)
	if n.Kind != yaml.MappingNode {
		return lineError(n, "this must be a mapping")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains(known, key.Value) {
			return lineError(key, unknownKey(key.Value, known))
		}
	}
	return n.Decode(v)
}

// ReadPolicy reads a policy file into o: issuers, the table of operations, what
// scopes imply. Files that it names lie beside it unless their paths are absolute.
func ReadPolicy(path string, o *resourceserver.Options) error {
	data, err := readBounded(path)
	if err != nil {
		return err
	}
	return parsePolicy(data, path, o)
}

// parsePolicy is ReadPolicy without the file itself.
func parsePolicy(data []byte, path string, o *resourceserver.Options) error {
	name := filepath.Base(path)
	var p policy
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&p); err != nil && !errors.Is(err, io.EOF) {
		return policyError(name, err)
	}
	if dec.Decode(&yaml.Node{}) == nil {
		return &PolicyError{lines: []string{name + " has a second YAML document; keep one, without ---"}}
	}
	r := policyReader{name: name, dir: filepath.Dir(path)}
	r.issuers(p, o)
	table := hasTable(data)
	r.operations(p, table, o)
	if !table && len(p.Issuers) == 0 {
		// A file cut short, or never filled: it must not open everything.
		r.lines = append(r.lines, name+" has neither a table (tools, prompts, resources, methods, default) nor issuers; "+
			"leave --operations out if every valid token may do everything")
	}
	if len(r.lines) > 0 {
		return &PolicyError{lines: r.lines}
	}
	return nil
}

// policyReader turns what was written into options, and collects mistakes.
type policyReader struct {
	name, dir string
	lines     []string
}

func (r *policyReader) mistake(line int, format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf("%s line %d: %s", r.name, line, fmt.Sprintf(format, args...)))
}

func (r *policyReader) issuers(p policy, o *resourceserver.Options) {
	for _, is := range p.Issuers {
		if is.Issuer == "" {
			r.mistake(is.line, "an issuer needs its identifier: issuer: https://…")
		}
		profile, err := resourceserver.ProfileRFC9068, error(nil)
		if is.Profile != "" {
			profile, err = resourceserver.ParseProfile(is.Profile)
		}
		if err != nil {
			r.mistake(is.line, "%v", err)
		}
		out := resourceserver.Issuer{Identifier: is.Issuer, Profile: profile, Algorithms: is.Algorithms, JWKSURI: is.JWKSURI,
			AllowAudiences: is.AllowAudiences, ScopeClaims: is.ScopeClaims, ScopePrefix: is.ScopePrefix}
		if is.JWKSFile != "" {
			out.JWKS = r.file(is.line, "jwks_file", is.JWKSFile)
		}
		if in := is.Introspection; in != nil {
			out.Introspection = &resourceserver.Introspection{Endpoint: in.Endpoint, ClientID: in.ClientID, AlsoJWT: in.AlsoJWT, MaxAge: in.MaxAge,
				TokenPrefix:  in.TokenPrefix,
				ClientSecret: r.secret(is.line, "client_secret_file", in.ClientSecretFile),
				BearerToken:  r.secret(is.line, "bearer_token_file", in.BearerTokenFile)}
		}
		o.Issuers = append(o.Issuers, out)
	}
}

func (r *policyReader) file(line int, key, path string) []byte {
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, path)
	}
	data, err := readBounded(path)
	if err != nil {
		r.mistake(line, "%s: %v", key, err)
	}
	return data
}

func (r *policyReader) secret(line int, key, path string) resourceserver.Secret {
	if path == "" {
		return ""
	}
	return resourceserver.Secret(strings.TrimRight(string(r.file(line, key, path)), "\r\n"))
}

// hasTable reports whether the file has a key of the table. One with nothing behind
// it counts, as when its lines were commented out: it must not open everything.
func hasTable(data []byte) bool {
	var top map[string]yaml.Node
	if yaml.Unmarshal(data, &top) != nil {
		return false
	}
	for _, key := range []string{"tools", "prompts", "resources", "methods", "default"} {
		if _, ok := top[key]; ok {
			return true
		}
	}
	return false
}

// operations reads the table. Without any of its keys there is none, and every
// valid token may do everything.
func (r *policyReader) operations(p policy, table bool, o *resourceserver.Options) {
	for _, e := range p.Implies {
		if o.Implies == nil {
			o.Implies = map[string][]string{}
		}
		if isNoScope(e.name) {
			r.mistake(e.line, "%q is not a scope", e.name)
		}
		o.Implies[e.name] = e.scopes
	}
	o.FilterLists = p.FilterLists
	if !table {
		return
	}
	o.Operations = map[resourceserver.Operation][]string{}
	if p.Default != nil {
		o.DefaultScopes = append([]string{}, *p.Default...)
	}
	for _, e := range p.Tools {
		o.Operations[resourceserver.Operation{Method: "tools/call", Name: e.name}] = e.scopes
	}
	for _, e := range p.Prompts {
		o.Operations[resourceserver.Operation{Method: "prompts/get", Name: e.name}] = e.scopes
	}
	for _, e := range p.Resources {
		for _, method := range []string{"resources/read", "resources/subscribe", "resources/unsubscribe"} {
			op := resourceserver.Operation{Method: method, Name: e.name}
			if prefix, ok := strings.CutSuffix(e.name, "*"); ok {
				op = resourceserver.Operation{Method: method, Prefix: prefix}
			}
			o.Operations[op] = e.scopes
		}
	}
	for _, e := range p.Methods {
		o.Operations[resourceserver.Operation{Method: e.name}] = e.scopes
	}
}

var (
	yamlLine    = regexp.MustCompile(`^line (\d+): (.*)$`)
	yamlUnknown = regexp.MustCompile(`^field (\S+) not found in type .*$`)
)

// policyError puts the decoder's errors into words, one a line.
func policyError(name string, err error) error {
	var typeError *yaml.TypeError
	if !errors.As(err, &typeError) {
		return &PolicyError{lines: []string{name + ": " + strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	var lines []string
	for _, text := range typeError.Errors {
		line, problem := "", text
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			line, problem = " line "+m[1], m[2]
		}
		if m := yamlUnknown.FindStringSubmatch(problem); m != nil {
			problem = unknownKey(m[1], yamlKeys(&policy{}))
		}
		problem = strings.NewReplacer("!!", "", "time.Duration", "a duration such as 30s").Replace(problem)
		lines = append(lines, name+line+": "+problem)
	}
	return &PolicyError{lines: lines}
}

func unknownKey(key string, known []string) string {
	return fmt.Sprintf("there is no setting %q; there are %s", key, strings.Join(known, ", "))
}

// yamlKeys are the keys of the struct that v points to.
func yamlKeys(v any) []string {
	var keys []string
	for f := range reflect.TypeOf(v).Elem().Fields() {
		if key := f.Tag.Get("yaml"); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxPolicy+1))
	if err == nil && len(data) > maxPolicy {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxPolicy)
	}
	return data, err
}
