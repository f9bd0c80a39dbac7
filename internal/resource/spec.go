package resource

import (
	"fmt"
	"strings"
)

// ParseScopeSpec reads a scope as it is written on the command line and in
// configuration: name=Title, followed by fields separated by semicolons,
//
//	files:delete=Delete files;risk=permanent;implies=files:read,files:write;default
//
// Fields are detail, group, risk and implies with a value, default, required and
// restricted without one. The title may be left out; a backslash before a
// semicolon or a backslash takes it as text. What the words mean is checked by
// Resource.Check.
func ParseScopeSpec(spec string) (Scope, error) {
	fields := splitSpec(spec)
	var s Scope
	s.Name, s.Title, _ = strings.Cut(fields[0], "=")
	s.Name, s.Title = strings.TrimSpace(s.Name), strings.TrimSpace(s.Title)
	if s.Name == "" {
		return Scope{}, fmt.Errorf("scope %q has no name; write name=Title", spec)
	}
	for _, f := range fields[1:] {
		if err := s.setField(f); err != nil {
			return Scope{}, fmt.Errorf("scope %q: %w", s.Name, err)
		}
	}
	return s, nil
}

func (s *Scope) setField(field string) error {
	name, value, hasValue := strings.Cut(field, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	flags := map[string]*bool{"default": &s.Default, "required": &s.Required, "restricted": &s.Restricted}
	texts := map[string]*string{"detail": &s.Detail, "group": &s.Group, "risk": (*string)(&s.Risk)}
	switch {
	case flags[name] != nil && !hasValue:
		*flags[name] = true
	case texts[name] != nil && value != "":
		*texts[name] = value
	case name == "implies" && value != "":
		for narrow := range strings.SplitSeq(value, ",") {
			s.Implies = append(s.Implies, strings.TrimSpace(narrow))
		}
	case flags[name] != nil:
		return fmt.Errorf("field %q takes no value", name)
	case texts[name] != nil, name == "implies":
		return fmt.Errorf("field %q needs a value, %s=…", name, name)
	default:
		return fmt.Errorf("unknown field %q; known are default, required, restricted, detail=, group=, risk=, implies=", name)
	}
	return nil
}

// splitSpec splits at semicolons without a backslash before them; there is
// always at least one field.
func splitSpec(spec string) []string {
	var fields []string
	var b strings.Builder
	escaped := false
	for _, c := range spec {
		switch {
		case escaped:
			b.WriteRune(c)
			escaped = false
		case c == '\\':
			escaped = true
		case c == ';':
			fields = append(fields, b.String())
			b.Reset()
		default:
			b.WriteRune(c)
		}
	}
	return append(fields, b.String())
}
