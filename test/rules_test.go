package test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
)

// clientRules is how many rules of what clients need ("A" rules) there are. What
// each says stands beside the code that keeps it.
const clientRules = 38

var clientRule = regexp.MustCompile(`^A(\d+)$`)

// Every rule is shown by a test function or a subtest that bears its name.
func TestClientRulesHaveTests(t *testing.T) {
	t.Parallel()
	found := namedIDs(t, "")
	for n := range clientRules {
		if rule := fmt.Sprintf("A%d", n+1); !found[rule] {
			t.Errorf("rule %s is named by no test", rule)
		}
	}
	for id := range found {
		m := clientRule.FindStringSubmatch(id)
		if m == nil {
			continue
		}
		if n, err := strconv.Atoi(m[1]); err != nil || n < 1 || n > clientRules {
			t.Errorf("a test names %s, which is no rule", id)
		}
	}
}
