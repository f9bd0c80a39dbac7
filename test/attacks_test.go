package test

import "testing"

// protectedBy lists, by folder, the attacks and the rules for middleware (M) and for clients (C) that a
// test in it must bear in its name. What each says stands beside the code that keeps
// it; a case of several folders is kept in each of them.
var protectedBy = map[string][]string{
	"resourceserver": {
		"JW-01", "JW-02", "JW-03", "JW-04", "JW-05", "JW-07", "JW-08", "JW-11", "JW-13", "JW-14", "JW-15", "JW-16", "JW-18",
		"JW-20", "JW-21", "JW-22", "JW-23", "JW-24", "JW-25", "JW-26", "JW-27", "JW-28", "JW-29", "JW-30", "JW-31", "JW-32",
		"IR-01", "IR-02", "IR-03", "IR-10", "SC-09", "AU-07", "AU-09", "MM-02", "MM-04", "RT-12",
		"M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "M9",
	},
	"authclient": {"MM-07", "MM-09", "MM-10", "MM-11", "MM-12", "MM-13", "MM-14", "MM-16",
		"C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10"},
	"authserver": {"IR-01", "IR-02", "IR-03", "IR-04", "IR-05", "IR-07", "IR-08", "IR-09", "IR-10", "AU-07", "AU-08", "AU-09", "CI-22"},
}

func TestAttacksHaveTests(t *testing.T) {
	t.Parallel()
	for folder, ids := range protectedBy {
		found := namedIDs(t, folder)
		for _, id := range ids {
			if !found[id] {
				t.Errorf("%s is named by no test of %s", id, folder)
			}
		}
	}
}
