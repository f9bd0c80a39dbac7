package resourceserver

// Tools returns a table for Options.Operations in which calling a tool needs the
// scopes that stand beside its name:
//
//	Operations: resourceserver.Tools(map[string][]string{
//		"list_notes": {"notes:read"},
//		"add_note":   {"notes:write"},
//	}),
//
// A tool without scopes is open to every valid token; one that is not there needs
// Options.DefaultScopes. Prompts and resources are added as further entries.
func Tools(scopes map[string][]string) map[Operation][]string {
	table := make(map[Operation][]string, len(scopes))
	for name, needed := range scopes {
		table[Operation{Method: "tools/call", Name: name}] = needed
	}
	return table
}
