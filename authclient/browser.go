package authclient

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// shellWords are the characters of URLs that shells obey, as URLs may also write them.
// xdg-open is a shell's script; what it makes of its argument is not ours to trust.
var shellWords = strings.NewReplacer("$", "%24", "'", "%27", "(", "%28", ")", "%29", ";", "%3B", "!", "%21", "*", "%2A")

// OpenBrowser shows a URL in the person's browser. It starts one program of the
// system's with the URL as one argument: no shell reads it (CVE-2025-6514). Only https
// URLs, and http on this machine, are opened.
func OpenBrowser(ctx context.Context, rawURL string) error {
	u, err := parseURL("URL to open", rawURL)
	if err != nil {
		return err
	}
	name, args := opener(runtime.GOOS)
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("no program opens a browser here: %w", err)
	}
	// the browser outlives the request that wanted it
	cmd := exec.CommandContext(context.WithoutCancel(ctx), path, append(args, shellWords.Replace(u.String()))...)
	cmd.Env = withoutOurs(os.Environ())
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// opener names the program. On Windows that is not cmd, for which & begins a command.
func opener(system string) (name string, args []string) {
	switch system {
	case "windows":
		return "rundll32.exe", []string{"url.dll,FileProtocolHandler"}
	case "darwin":
		return "/usr/bin/open", nil
	}
	return "xdg-open", nil
}

// withoutOurs leaves out what is meant for this program alone, and may be secret.
func withoutOurs(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, "OSTIARY_") })
}
