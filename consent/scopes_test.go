package consent

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/web"
)

func calendar() resource.Resource {
	return resource.Resource{Name: "Team Calendar", Scopes: []resource.Scope{
		{Name: "cal:read", Title: "See your calendars", Detail: "Titles and times", Required: true, Implies: []string{"cal:busy"}},
		{Name: "cal:busy", Title: "See when you are busy"},
		{Name: "cal:write", Title: "Create and change events", Risk: resource.RiskChanges},
		{Name: "cal:delete", Title: "Delete events", Detail: "Cannot be undone", Risk: resource.RiskPermanent},
	}}
}

func TestWords(t *testing.T) {
	never := func(string) bool { return false }
	requested := []string{"cal:delete", "odd:one", "cal:write", "cal:busy", "cal:read"}
	o := newOffer(calendar(), requested)
	t.Run("unverified client", func(t *testing.T) {
		required, groups := o.words(false, o.initial(false), never)
		wantRequired := []web.Permission{
			{Scope: "cal:read", Title: "See your calendars", Detail: "Titles and times"},
			{Scope: "cal:busy", Title: "See when you are busy"}, // implied by cal:read
		}
		wantGroups := []web.PermissionGroup{{Permissions: []web.Permission{
			{Scope: "cal:write", Title: "Create and change events", Checked: true},
			{Scope: "cal:delete", Title: "Delete events", Detail: "Cannot be undone", Permanent: true, OffAtFirst: true},
			{Scope: "odd:one", Checked: true}, // no description: shown as code
		}}}
		if !cmp.Equal(required, wantRequired) || !cmp.Equal(groups, wantGroups) {
			t.Errorf("words:\n%s\n%s", cmp.Diff(wantRequired, required), cmp.Diff(wantGroups, groups))
		}
	})
	t.Run("verified client: everything ticked", func(t *testing.T) {
		_, groups := o.words(true, o.initial(true), never)
		for _, p := range groups[0].Permissions {
			if !p.Checked || p.OffAtFirst {
				t.Errorf("%s: %+v", p.Scope, p)
			}
		}
	})
	t.Run("allowed before", func(t *testing.T) {
		required, groups := o.words(false, nil, func(s string) bool { return s == "cal:read" || s == "cal:write" })
		if !required[0].Before || required[1].Before || !groups[0].Permissions[0].Before || groups[0].Permissions[1].Before {
			t.Errorf("required %+v, groups %+v", required, groups)
		}
	})
}

func TestGroupsAboveEight(t *testing.T) {
	r := resource.Resource{}
	var requested []string
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		r.Scopes = append(r.Scopes, resource.Scope{Name: name, Title: name, Group: []string{"Mail", "", "Files"}[i%3]})
		requested = append(requested, name)
	}
	names := func(n int) []string {
		_, groups := newOffer(r, requested[:n]).words(true, nil, func(string) bool { return false })
		var list []string
		for _, g := range groups {
			list = append(list, g.Name)
		}
		return list
	}
	if got := names(8); !slices.Equal(got, []string{""}) {
		t.Errorf("eight scopes: groups %q, want one without a name", got)
	}
	if got := names(9); !slices.Equal(got, []string{"Mail", "", "Files"}) {
		t.Errorf("nine scopes: groups %q, want those of the resource", got)
	}
}

// TestSC07_GrantedIsWithinWhatWasShownAndChosen: granted = requested ∩ (ticked ∪
// required), whatever the resource, the request and the form are.
func TestSC07_GrantedIsWithinWhatWasShownAndChosen(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	some := func(rng *rand.Rand) []string {
		var list []string
		for _, i := range rng.Perm(len(names)) {
			if rng.IntN(2) == 0 {
				list = append(list, names[i])
			}
		}
		return list
	}
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := resource.Resource{}
		for _, name := range some(rng) {
			s := resource.Scope{Name: name, Required: rng.IntN(3) == 0}
			if rng.IntN(4) == 0 {
				s.Implies = some(rng)
			}
			r.Scopes = append(r.Scopes, s)
		}
		requested, ticked := some(rng), some(rng)
		o := newOffer(r, requested)
		if len(o.required)+len(o.optional) != len(requested) {
			t.Fatalf("seed %d: the page shows %d scopes of %d", seed, len(o.required)+len(o.optional), len(requested))
		}
		var want []string
		for _, name := range requested {
			needed := slices.ContainsFunc(o.required, func(s resource.Scope) bool { return s.Name == name })
			if needed || slices.Contains(ticked, name) {
				want = append(want, name)
			}
			if s, ok := r.Scope(name); ok && s.Required && !needed {
				t.Fatalf("seed %d: required %s has a checkbox", seed, name)
			}
		}
		if got := o.granted(ticked); !slices.Equal(got, want) {
			t.Fatalf("seed %d: requested %v, ticked %v: granted %v, want %v", seed, requested, ticked, got, want)
		}
		for _, name := range ticked {
			shown := slices.ContainsFunc(o.optional, func(s resource.Scope) bool { return s.Name == name })
			if o.offers([]string{name}) != shown {
				t.Fatalf("seed %d: offers(%s) = %t, it has a checkbox: %t", seed, name, !shown, shown)
			}
		}
	}
}
