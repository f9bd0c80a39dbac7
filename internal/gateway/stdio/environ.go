package stdio

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"
)

// inherited are the variables a program needs to find its files, its language
// and, on Windows, its libraries. Everything else may hold a secret.
var inherited = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM",
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
	"PROGRAMFILES", "PROCESSOR_ARCHITECTURE", "HOMEDRIVE", "HOMEPATH", "USERNAME", "USERPROFILE"}

const ownPrefix = "OSTIARY_" // D2: no child process inherits one

func checkEnvNames(names []string) error {
	var errs []error
	for _, name := range names {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			errs = append(errs, fmt.Errorf("Options.Env: %q is not the name of a variable", name))
		case strings.HasPrefix(strings.ToUpper(name), ownPrefix):
			errs = append(errs, fmt.Errorf("Options.Env: %s is for Ostiary alone", name))
		}
	}
	return errors.Join(errs...)
}

// allowedEnv returns those variables of this process that children get.
func allowedEnv(further []string) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, value, ok := strings.Cut(entry, "=")
		// A value like "() {" is a function to old shells, which they run.
		if ok && isAllowed(name, further) && !strings.HasPrefix(value, "()") {
			env = append(env, entry)
		}
	}
	return env
}

func isAllowed(name string, further []string) bool {
	if slices.Contains(further, name) {
		return true
	}
	name = strings.ToUpper(name) // Windows writes Path
	return slices.Contains(inherited, name) || strings.HasPrefix(name, "LC_")
}

// identity tells a child for whom it works, and which client began. Scopes change
// while it lives (a step-up adds some), and a token is nobody's business.
func identity(o owner) ([]string, error) {
	var env []string
	for _, v := range [][2]string{{"MCP_GATEWAY_ISSUER", o.issuer}, {"MCP_GATEWAY_SUBJECT", o.subject}, {"MCP_GATEWAY_CLIENT_ID", o.client}} {
		if strings.ContainsFunc(v[1], unicode.IsControl) {
			return nil, errors.New("the token names its subject or client with a control character")
		}
		env = append(env, v[0]+"="+v[1])
	}
	return env, nil
}
