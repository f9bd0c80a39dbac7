package resource

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Limits of what an operator may declare.
const (
	maxName   = 100
	maxText   = 300
	maxScopes = 200
)

// Check reports everything that is wrong with what an operator declared: the
// name, and each scope. Its errors name the field.
func (r Resource) Check() error {
	errs := []error{checkText("name", r.Name, maxName)}
	if strings.TrimSpace(r.Name) == "" {
		errs = append(errs, errors.New("name is empty"))
	}
	if len(r.Scopes) > maxScopes {
		errs = append(errs, fmt.Errorf("more than %d scopes", maxScopes))
	}
	seen := make(map[string]bool)
	for _, s := range r.Scopes {
		if seen[s.Name] {
			errs = append(errs, fmt.Errorf("scope %q is there twice", s.Name))
		}
		seen[s.Name] = true
		errs = append(errs, r.checkScope(s))
	}
	return errors.Join(errs...)
}

func (r Resource) checkScope(s Scope) error {
	if !oauth.IsScopeToken(s.Name) {
		return fmt.Errorf("scope %q is not a scope-token (RFC 6749 section 3.3)", s.Name)
	}
	var errs []error
	if oauth.IsProtocolScope(s.Name) {
		errs = append(errs, fmt.Errorf("scope %q asks the authorization server for something; a resource cannot declare it", s.Name))
	}
	switch s.Risk {
	case "", RiskLow, RiskChanges, RiskPermanent:
	default:
		errs = append(errs, fmt.Errorf("scope %q: risk %q is not %s, %s or %s", s.Name, s.Risk, RiskLow, RiskChanges, RiskPermanent))
	}
	for _, field := range [][2]string{{"title", s.Title}, {"detail", s.Detail}, {"group", s.Group}} {
		errs = append(errs, checkText("scope "+s.Name+": "+field[0], field[1], maxText))
	}
	for _, name := range s.Implies {
		narrow, ok := r.Scope(name)
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("scope %q implies %q, which is not declared", s.Name, name))
		case narrow.Restricted && !s.Restricted:
			// else whoever is refused the restricted one takes the other
			errs = append(errs, fmt.Errorf("scope %q implies the restricted %q, so it must be restricted too", s.Name, name))
		}
	}
	return errors.Join(errs...)
}

// checkText admits what can stand in one line of a page: valid UTF-8 without
// control and formatting characters, which could turn a sentence around.
func checkText(field, s string, limit int) error {
	switch {
	case !utf8.ValidString(s):
		return fmt.Errorf("%s is not valid UTF-8", field)
	case utf8.RuneCountInString(s) > limit:
		return fmt.Errorf("%s is longer than %d characters", field, limit)
	case strings.ContainsFunc(s, func(c rune) bool { return unicode.IsControl(c) || unicode.Is(unicode.Cf, c) }):
		return fmt.Errorf("%s has a control character", field)
	}
	return nil
}

// DefaultName is what a resource is called until somebody names it: host and
// path of its canonical identifier.
func DefaultName(canonical string) string {
	_, name, _ := strings.Cut(canonical, "://")
	if c := []rune(name); len(c) > maxName {
		name = string(c[:maxName])
	}
	return name
}
