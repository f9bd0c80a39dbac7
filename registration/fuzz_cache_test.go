package registration

import (
	"net/http"
	"testing"
)

// FuzzFreshFor: whatever a host says of caching, its document is read again
// between five minutes and a day later (CI-16).
func FuzzFreshFor(f *testing.F) {
	for _, cc := range []string{"", "max-age=600", "s-maxage=1, max-age=9", "no-store", "max-age=99999999999999999999", `max-age="-1"`, ",=,", "max-age=0x10"} {
		f.Add(cc)
	}
	f.Fuzz(func(t *testing.T, cc string) {
		if got := freshFor(http.Header{"Cache-Control": {cc}}); got < minFresh || got > maxFresh {
			t.Errorf("%q: fresh for %s", cc, got)
		}
	})
}
