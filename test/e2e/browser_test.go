package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// newBrowser starts a headless Chromium with a profile of its own and returns
// the context of its first tab.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	// Chromium still writes for a moment after it was closed, which t.TempDir
	// would call a failure.
	profile, err := os.MkdirTemp("", "ostiary-e2e-*")
	if err != nil {
		t.Fatal(err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(profile), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	limited, cancel := context.WithTimeout(allocator, 10*time.Minute)
	ctx, closeTab := chromedp.NewContext(limited)
	t.Cleanup(func() {
		closeTab()
		cancel()
		stop()
		_ = os.RemoveAll(profile)
	})
	return ctx
}

// artefacts returns the directory in which screenshots are kept:
// $OSTIARY_ARTEFACTS/name, or one that the test tool chooses.
func artefacts(t *testing.T, name string) string {
	t.Helper()
	dir := t.ArtifactDir()
	if root := os.Getenv("OSTIARY_ARTEFACTS"); root != "" {
		dir = filepath.Join(root, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// axeSource returns axe-core's script, installing the pinned version when it is
// missing.
func axeSource(t *testing.T) string {
	t.Helper()
	const file = "node_modules/axe-core/axe.min.js"
	if _, err := os.Stat(file); err != nil {
		cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("npm ci: %v\n%s", err, out)
		}
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}
