package consent

import (
	"slices"

	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/web"
)

// groupAbove is how many optional permissions stand in one list; more are shown
// under the resource's group headings (pages.md 4.2).
const groupAbove = 8

// offer is what one page offers: the scopes of a request that may still be
// granted, in words. It is computed again for the answer, so that a form can
// only choose among what the page showed (SC-08).
type offer struct {
	// requested are the scopes in the order the client asked for them.
	requested []string
	// required are those the person cannot leave out; optional the others, both
	// in the resource's order.
	required, optional []resource.Scope
	// kept are requested and allowed already: a step-up page does not ask for them.
	kept []string
}

// newOffer sorts the requested scopes of a resource. A scope that the resource
// does not declare is optional and has no words. A scope that a required one
// implies cannot be left out either, since the token allows it anyway (D13).
func newOffer(r resource.Resource, requested []string) offer {
	o := offer{requested: requested}
	var required []string
	for _, s := range r.Scopes {
		if s.Required && slices.Contains(requested, s.Name) {
			required = append(required, s.Name)
		}
	}
	for _, s := range inOrder(r, requested) {
		if r.Covers(required, s.Name) {
			o.required = append(o.required, s)
		} else {
			o.optional = append(o.optional, s)
		}
	}
	return o
}

// inOrder returns the requested scopes in the resource's order, then those it
// does not declare.
func inOrder(r resource.Resource, requested []string) []resource.Scope {
	var scopes []resource.Scope
	for _, s := range r.Scopes {
		if slices.Contains(requested, s.Name) {
			scopes = append(scopes, s)
		}
	}
	for _, name := range requested {
		if _, declared := r.Scope(name); !declared {
			scopes = append(scopes, resource.Scope{Name: name})
		}
	}
	return scopes
}

// offers reports whether every ticked scope has a checkbox on the page (AR-13,
// SC-08).
func (o offer) offers(ticked []string) bool {
	for _, name := range ticked {
		if !slices.ContainsFunc(o.optional, func(s resource.Scope) bool { return s.Name == name }) {
			return false
		}
	}
	return true
}

// granted returns requested ∩ (ticked ∪ required ∪ kept), in the order requested:
// never more than was asked for, shown and chosen (SC-07), and on a step-up page
// never less than what was allowed before.
func (o offer) granted(ticked []string) []string {
	var granted []string
	for _, name := range o.requested {
		needed := slices.ContainsFunc(o.required, func(s resource.Scope) bool { return s.Name == name })
		if needed || slices.Contains(o.kept, name) || slices.Contains(ticked, name) {
			granted = append(granted, name)
		}
	}
	return granted
}

// initial returns which checkboxes are ticked at first: all but the permanent
// permissions of a client nobody vouches for.
func (o offer) initial(trusted bool) []string {
	var ticked []string
	for _, s := range o.optional {
		if trusted || s.Risk != resource.RiskPermanent {
			ticked = append(ticked, s.Name)
		}
	}
	return ticked
}

// words are the permissions as the page shows them. before reports a permission
// that the person allowed this client earlier.
func (o offer) words(trusted bool, ticked []string, before func(scope string) bool) (required []web.Permission, groups []web.PermissionGroup) {
	for _, s := range o.required {
		required = append(required, permission(s, before))
	}
	for _, s := range o.optional {
		p := permission(s, before)
		p.Checked = slices.Contains(ticked, s.Name)
		p.OffAtFirst = p.Permanent && !trusted
		name := ""
		if len(o.optional) > groupAbove {
			name = s.Group
		}
		groups = addTo(groups, name, p)
	}
	return required, groups
}

func permission(s resource.Scope, before func(scope string) bool) web.Permission {
	return web.Permission{Scope: s.Name, Title: s.Title, Detail: s.Detail,
		Permanent: s.Risk == resource.RiskPermanent, Before: before(s.Name)}
}

// addTo puts p into the group of that name, which keeps its first place.
func addTo(groups []web.PermissionGroup, name string, p web.Permission) []web.PermissionGroup {
	i := slices.IndexFunc(groups, func(g web.PermissionGroup) bool { return g.Name == name })
	if i < 0 {
		groups, i = append(groups, web.PermissionGroup{Name: name}), len(groups)
	}
	groups[i].Permissions = append(groups[i].Permissions, p)
	return groups
}
