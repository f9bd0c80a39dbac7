package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

func TestMain(m *testing.M) {
	code := m.Run()
	closeBrowser()
	launch.Cleanup()
	os.Exit(code)
}

// chromium is the one browser of the test process.
var chromium struct {
	sync.Mutex
	ctx     context.Context
	close   func()
	profile string
}

// browser starts the browser that all tests share. Hosts below .example lead to
// this machine, where tests listen with certificates of their own.
func browser() (context.Context, error) {
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx != nil {
		return chromium.ctx, nil
	}
	profile, err := os.MkdirTemp("", "ostiary-e2e-*")
	if err != nil {
		return nil, err
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.IgnoreCertErrors,
		chromedp.UserDataDir(profile), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		// Going back shall ask the server again.
		chromedp.Flag("disable-back-forward-cache", true),
		chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1"))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, closeTab := chromedp.NewContext(allocator)
	stopAll := func() { closeTab(); stop() }
	if err := chromedp.Do(ctx); err != nil {
		stopAll()
		return nil, errors.Join(err, os.RemoveAll(profile))
	}
	chromium.ctx, chromium.close, chromium.profile = ctx, stopAll, profile
	return ctx, nil
}

// closeBrowser ends the browser and removes its profile.
func closeBrowser() {
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx == nil {
		return
	}
	chromium.close()
	// Chromium may still write for a moment, so a rest may stay.
	_ = os.RemoveAll(chromium.profile)
}

// newBrowser returns the context of a tab that shares no cookie and no cache
// with other tests.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	shared, err := browser()
	if err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	limited, cancel := context.WithTimeout(shared, 5*time.Minute)
	ctx, closeTab := chromedp.NewContext(limited, chromedp.WithNewBrowserContext())
	t.Cleanup(func() {
		closeTab()
		cancel()
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

var installAxe sync.Mutex

// axeSource returns axe-core's script, installing the pinned version when it is
// missing.
func axeSource(t *testing.T) string {
	t.Helper()
	installAxe.Lock()
	defer installAxe.Unlock()
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
