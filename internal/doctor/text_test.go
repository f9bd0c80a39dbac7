package doctor

import (
	"strings"
	"testing"
)

// Texts are broken where the terminal ends, within bounds, and no word is lost.
func TestTextWidth(t *testing.T) {
	t.Parallel()
	why := strings.TrimSpace(strings.Repeat("a reason of several words ", 20))
	r := &Report{URL: "https://mcp.example/mcp", Kind: KindServer, Counts: map[State]int{Broken: 1},
		Findings: []Finding{{ID: "x", Hop: HopChallenge, Title: "A title", State: Broken, Why: why}}}
	for width, want := range map[int]int{0: 100, 20: 60, 72: 72, 300: 100} {
		var b strings.Builder
		if err := r.WriteText(&b, TextOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		longest, words := 0, 0
		for line := range strings.Lines(b.String()) {
			longest = max(longest, len(strings.TrimRight(line, "\n")))
			words += strings.Count(line, "reason")
		}
		if longest > want || longest < want-10 || words != 20 {
			t.Errorf("width %d: the longest line has %d columns, want up to %d; %d of 20 reasons", width, longest, want, words)
		}
	}
}
