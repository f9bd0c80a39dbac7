package launch

import (
	"os"
	"os/exec"
	"sync"
	"testing"
)

// Node is the JavaScript runtime of a folder with a package.json, as seen from
// there: npm installs it with everything else, at the version that the lock says.
const Node = "node_modules/node/bin/node"

// npm is run once for a test binary, in the folder that it runs in.
var npm sync.Once

// InstallNode installs what package-lock.json of the test's own folder says,
// unless it is there.
func InstallNode(t testing.TB) {
	t.Helper()
	npm.Do(func() {
		if _, err := os.Stat(Node); err == nil {
			return
		}
		if out, err := exec.Command("npm", "ci").CombinedOutput(); err != nil {
			t.Errorf("npm ci: %v\n%s", err, out)
		}
	})
	if _, err := os.Stat(Node); err != nil {
		t.Fatalf("node is not installed; run npm ci in this folder: %v", err)
	}
}
