package resourceserver

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Operation is what one JSON-RPC message asks an MCP server to do, as the key
// of Options.Operations. Of several entries that fit, that with the Name is
// taken, then that with the longest Prefix, then that of the whole Method.
type Operation struct {
	// Method is the JSON-RPC method, e.g. "tools/call".
	Method string
	// Name is the tool's or prompt's name, or the resource's URI, byte for byte.
	Name string
	// Prefix stands for every resource whose URI begins with it, e.g.
	// "notes://personal/" for the template "notes://personal/{id}". It ends with
	// a delimiter, so that it takes whole segments. Only methods of resources
	// have it. Where the table has a Name or a Prefix for the Method, a URI with dot
	// segments, an empty segment, user information or another spelling than the
	// normal one (RFC 3986 §6.2.2) is refused unless it is a Name, and so is one
	// with a port that is in no Prefix: the server may read it as another resource,
	// so neither the whole Method nor DefaultScopes opens it. What the server itself
	// takes for the same, as file systems that fold case do with "Notes" and
	// "notes", is for its table to list or for the server to tell apart.
	Prefix string
}

// Methods that name what they act on in their own way.
const (
	methodComplete = "completion/complete"
	methodListen   = "subscriptions/listen"
)

// openMethods begin, end or describe a conversation and touch nothing that a
// table could protect: a valid token suffices unless the table lists them. So do
// notifications.
var openMethods = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true, "logging/setLevel": true, methodListen: true,
	"tools/list": true, "prompts/list": true, "resources/list": true, "resources/templates/list": true,
}

// table answers what an operation needs.
type table struct {
	entries  map[Operation][]string
	prefixes map[string][]string // by method, the longest first
	selects  map[string]bool     // methods with entries of single resources
	slashed  map[Operation]bool  // methods and schemes (as Name) of entries with "://"
	fallback []string            // of everything else; nil refuses
}

func newTable(o Options) *table {
	t := &table{entries: maps.Clone(o.Operations), prefixes: map[string][]string{}, selects: map[string]bool{}, slashed: map[Operation]bool{},
		fallback: o.DefaultScopes}
	for op := range t.entries {
		if op.Prefix != "" {
			t.prefixes[op.Method] = append(t.prefixes[op.Method], op.Prefix)
		}
		if op.Prefix != "" || op.Name != "" {
			t.selects[op.Method] = true
		}
		if scheme, _, ok := strings.Cut(op.Prefix+op.Name, "://"); ok {
			t.slashed[Operation{Method: op.Method, Name: scheme}] = true
		}
	}
	for _, list := range t.prefixes {
		slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	}
	return t
}

// scopesFor returns what op needs; false when nobody may do it.
func (t *table) scopesFor(op Operation) ([]string, bool) {
	if scopes, ok := t.entries[op]; ok {
		return scopes, true
	}
	if op.Name != "" && isResourceMethod(op.Method) && t.selects[op.Method] {
		p, ok := t.prefixOf(op)
		if !ok {
			return nil, false // it may be one of those that the table protects
		}
		if p != "" {
			return t.entries[Operation{Method: op.Method, Prefix: p}], true
		}
	}
	if scopes, ok := t.entries[Operation{Method: op.Method}]; ok {
		return scopes, true
	}
	if openMethods[op.Method] || strings.HasPrefix(op.Method, "notifications/") {
		return nil, true
	}
	return t.fallback, t.fallback != nil
}

// prefixOf returns the longest Prefix that the URI of op lies in, "" for none;
// false when somebody may take it for another URI than it seems to be.
func (t *table) prefixOf(op Operation) (prefix string, ok bool) {
	u, ok := normalURI(op.Name)
	if !ok || u.Opaque != "" && t.slashed[Operation{Method: op.Method, Name: u.Scheme}] {
		return "", false
	}
	authority, withPath := 0, op.Name
	if u.Host != "" {
		authority = len(u.Scheme) + len("://") + len(u.Host)
		if u.Path == "" { // RFC 3986 §6.2.3: as good as "/"
			withPath = op.Name[:authority] + "/" + op.Name[authority:]
		}
	}
	for _, p := range t.prefixes[op.Method] {
		// Who looks for a resource may pass over the port, so it must be in the Prefix.
		if (strings.HasPrefix(op.Name, p) || strings.HasPrefix(withPath, p)) && (u.Port() == "" || len(p) > authority) {
			return p, true
		}
	}
	return "", u.Port() == ""
}

// lists reports an entry for op, or for its whole method.
func (t *table) lists(op Operation) bool {
	_, one := t.entries[op]
	_, whole := t.entries[Operation{Method: op.Method}]
	return one || whole
}

// needs joins what all operations need; false when nobody may do one of them.
func (t *table) needs(list []message) ([]string, bool) {
	var needed []string
	for _, m := range list {
		for _, op := range m.ops {
			if m.completes != "" && !t.lists(op) {
				// What it completes to is data of it: open to those who may get it.
				op.Method = m.completes
			}
			scopes, ok := t.scopesFor(op)
			if !ok {
				return nil, false
			}
			if needed == nil {
				needed = slices.Clip(scopes) // what is appended does not end in the table
				continue
			}
			needed = append(needed, scopes...)
		}
	}
	return needed, true
}

func isResourceMethod(method string) bool { return strings.HasPrefix(method, "resources/") }

// normalURI parses a URI, or the fixed part of a template of some, that has one
// spelling only (RFC 3986 §6.2.2): its prefix says where it lies.
func normalURI(raw string) (*url.URL, bool) {
	raw, _, _ = strings.Cut(raw, "{") // RFC 6570
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" || !strings.HasPrefix(raw, u.Scheme+":") {
		return nil, false
	}
	for i := range len(raw) {
		if c := raw[i]; c <= ' ' || c > '~' || c == '\\' || c == '%' && !isNormalEscape(raw[i:]) {
			return nil, false
		}
	}
	if !isNormalAuthority(u) {
		return nil, false
	}
	p := u.Path + u.Opaque
	return u, p == "" || p == "/" || path.Clean(p) == strings.TrimSuffix(p, "/")
}

// isNormalAuthority reports one that names its host in one way: no dot at the end,
// no port that need not be there, and none that could be written shorter.
func isNormalAuthority(u *url.URL) bool {
	switch host, port := u.Hostname(), u.Port(); {
	case u.Host != strings.ToLower(u.Host), u.User != nil, u.OmitHost, strings.HasSuffix(host, "."):
		return false
	case u.Scheme == "file" && u.Host != "", u.Scheme == "https" && port == "443", u.Scheme == "http" && port == "80":
		return false
	case port == "":
		return !strings.HasSuffix(u.Host, ":")
	default:
		n, err := strconv.ParseUint(port, 10, 16)
		return err == nil && n > 0 && port[0] != '0'
	}
}

// isNormalEscape reports a percent-encoded octet that cannot be written plainly,
// and that does not hide a delimiter of paths.
func isNormalEscape(s string) bool {
	if len(s) < 3 || strings.ToUpper(s[1:3]) != s[1:3] {
		return false
	}
	c, err := url.PathUnescape(s[:3])
	return err == nil && !isUnreserved(c[0]) && c[0] > ' ' && c[0] != '/' && c[0] != '\\' && c[0] != '%'
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

func isNormalPrefix(p string) bool {
	_, ok := normalURI(p)
	return ok
}

// checkOperationTable refuses entries that could not do what they seem to say.
func checkOperationTable(o Options) error {
	var errs []error
	for op := range o.Operations {
		switch {
		case op.Method == "":
			errs = append(errs, fmt.Errorf("an operation of Operations has no Method (Name %q)", op.Name))
		case op.Prefix == "":
		case op.Name != "" || !isResourceMethod(op.Method):
			errs = append(errs, fmt.Errorf("operation %s: Prefix %q needs a method of resources and no Name", op.Method, op.Prefix))
		case isUnreserved(op.Prefix[len(op.Prefix)-1]) || !isNormalPrefix(op.Prefix):
			errs = append(errs, fmt.Errorf("operation %s: Prefix %q is not the beginning of a normal URI that ends with a delimiter, such as /",
				op.Method, op.Prefix))
		}
	}
	if o.FilterLists && o.Operations == nil {
		errs = append(errs, errors.New("Options.FilterLists needs Operations"))
	}
	if o.DefaultScopes != nil && o.Operations == nil {
		errs = append(errs, errors.New("Options.DefaultScopes needs Operations (an empty map will do): without it nothing is asked of a token"))
	}
	for broad, narrow := range o.Implies {
		for _, s := range append([]string{broad}, narrow...) {
			if !oauth.IsScopeToken(s) {
				errs = append(errs, fmt.Errorf("Options.Implies: %q is not a scope-token (RFC 6749 §3.3)", s))
			}
		}
	}
	return errors.Join(errs...)
}
