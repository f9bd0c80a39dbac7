package resource

import (
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Narrow returns which of the requested scopes may be granted, in the order
// requested (D13). trusted says that the operator added or verified the client;
// clientScope is the scope of its registration, "" for no limit.
//
// Protocol scopes are never granted (D26); a request of nothing else counts as
// none and gets DefaultScopes. Unknown scopes, restricted ones of an untrusted
// client and those beyond the registration are dropped; when that leaves nothing
// of what was asked, it is invalid_scope. A resource without declared scopes
// accepts what is asked, also nothing.
func (r Resource) Narrow(requested []string, trusted bool, clientScope string) ([]string, error) {
	asked := slices.DeleteFunc(slices.Clone(requested), oauth.IsProtocolScope)
	none := len(asked) == 0
	if none {
		asked = r.DefaultScopes()
	}
	limit := strings.Fields(clientScope)
	var granted []string
	for _, name := range asked {
		if r.grantable(name, trusted) && (len(limit) == 0 || r.Covers(limit, name)) && !slices.Contains(granted, name) {
			granted = append(granted, name)
		}
	}
	if len(granted) == 0 && !(none && len(r.Scopes) == 0) {
		if none {
			return nil, oauth.InvalidScope("scope is required: this client may have none of the resource's default scopes")
		}
		return nil, oauth.InvalidScope("none of the scopes asked for can be granted for this resource")
	}
	return granted, nil
}

func (r Resource) grantable(name string, trusted bool) bool {
	if len(r.Scopes) == 0 {
		return true
	}
	s, ok := r.Scope(name)
	return ok && (trusted || !s.Restricted)
}

// Scope returns the declared scope of that name.
func (r Resource) Scope(name string) (Scope, bool) {
	i := slices.IndexFunc(r.Scopes, func(s Scope) bool { return s.Name == name })
	if i < 0 {
		return Scope{}, false
	}
	return r.Scopes[i], true
}

// DefaultScopes returns the scopes of a request that asks for none: those marked
// default or required, in the operator's order. When none is marked it is the
// first, by which an operator who only lists scopes grants the least and not
// everything. A restricted scope is never granted by default (SC-04).
func (r Resource) DefaultScopes() []string {
	var marked []string
	first := ""
	for _, s := range r.Scopes {
		switch {
		case s.Restricted:
		case s.Default, s.Required:
			marked = append(marked, s.Name)
		case first == "":
			first = s.Name
		}
	}
	if len(marked) == 0 && first != "" {
		return []string{first}
	}
	return marked
}

// Covers reports whether the scopes in have allow the scope name: it is among
// them, or one of them implies it, directly or through others.
func (r Resource) Covers(have []string, name string) bool {
	seen := make(map[string]bool)
	queue := slices.Clone(have)
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if s == name {
			return true
		}
		if seen[s] {
			continue
		}
		seen[s] = true
		if declared, ok := r.Scope(s); ok {
			queue = append(queue, declared.Implies...)
		}
	}
	return false
}
