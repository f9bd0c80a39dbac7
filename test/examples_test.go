package test

import (
	"path/filepath"
	"strings"
	"testing"
)

// maxProtection is how many lines may make an MCP server a protected one.
const maxProtection = 10

// Each example says which of its lines protect it: those between protect:begin
// and protect:end, imports and all, and those that end with "// protect".
func TestExamplesAreProtectedInTenLines(t *testing.T) {
	t.Parallel()
	examples := []string{"examples/mcpserver/main.go", "examples/servers/mcpgo/main.go", "examples/servers/nethttp/main.go"}
	routers, err := filepath.Glob("../examples/routers/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range routers {
		examples = append(examples, strings.TrimPrefix(filepath.ToSlash(path), "../"))
	}
	if len(examples) < 6 {
		t.Errorf("only %v were looked at", examples)
	}
	for _, path := range examples {
		if lines := protection(t, path); lines < 5 || lines > maxProtection {
			t.Errorf("%s: %d lines protect it, want at most %d and not next to none", path, lines, maxProtection)
		}
	}
}

// protection counts the marked lines of a file, and wants every use of
// resourceserver but TokenFromContext to be among them.
func protection(t *testing.T, path string) int {
	t.Helper()
	lines, inside := 0, false
	for line := range strings.Lines(readDoc(t, path)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "// protect:begin" && !inside, line == "// protect:end" && inside:
			inside = !inside
		case strings.HasPrefix(line, "// protect:"):
			t.Errorf("%s: %q does not fit what stands before it", path, line)
		case line == "" || strings.HasPrefix(line, "//"):
		case inside || strings.HasSuffix(line, "// protect"):
			lines++
		case strings.Contains(strings.ReplaceAll(line, "resourceserver.TokenFromContext", ""), "resourceserver"):
			t.Errorf("%s: %q is not marked", path, line)
		}
	}
	if inside {
		t.Errorf("%s: a mark is not closed", path)
	}
	return lines
}

// The protocol needs no SDK, and no more than this.
func TestProtocolByHandIsShort(t *testing.T) {
	t.Parallel()
	if n := strings.Count(readDoc(t, "examples/servers/nethttp/mcp.go"), "\n"); n > 80 {
		t.Errorf("examples/servers/nethttp/mcp.go has %d lines, want at most 80", n)
	}
}
