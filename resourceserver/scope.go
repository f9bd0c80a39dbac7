package resourceserver

import "slices"

// closure follows implies to the end, so that one look-up answers.
func closure(implies map[string][]string) map[string][]string {
	all := make(map[string][]string, len(implies))
	for broad := range implies {
		covered := []string{broad}
		for i := 0; i < len(covered); i++ {
			for _, narrow := range implies[covered[i]] {
				if !slices.Contains(covered, narrow) {
					covered = append(covered, narrow)
				}
			}
		}
		all[broad] = covered
	}
	return all
}

// covers reports whether t may do what scope says, by itself or by a broader one.
func (s *Server) covers(t *Token, scope string) bool {
	return slices.Contains(t.Scopes, scope) || len(s.implied) > 0 &&
		slices.ContainsFunc(t.Scopes, func(have string) bool { return slices.Contains(s.implied[have], scope) })
}

// missing returns those of needed that t does not cover, each once.
func (s *Server) missing(t *Token, needed []string) []string {
	var list []string
	for _, scope := range needed {
		if !s.covers(t, scope) && !slices.Contains(list, scope) {
			list = append(list, scope)
		}
	}
	return list
}

// Allows reports whether the token covers all of scopes, with what
// Options.Implies says; Token.HasScopes knows nothing of that. No token allows
// nothing.
func (s *Server) Allows(t *Token, scopes ...string) bool {
	return t != nil && len(s.missing(t, scopes)) == 0
}
