package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/internal/printable"
)

// printTools lists tools for people: what each takes, and the first sentence of what
// it says of itself.
func printTools(w io.Writer, tools []*mcp.Tool) {
	if len(tools) == 0 {
		_, _ = fmt.Fprintln(w, "The server has no tools for you.")
		return
	}
	rows := [][]string{{"TOOL", "ARGUMENTS", "WHAT IT DOES"}}
	for _, tool := range tools {
		rows = append(rows, []string{terminalLine(tool.Name), terminalLine(argumentsOf(tool)), firstLine(cmp.Or(tool.Description, tool.Title))})
	}
	table(w, rows...)
}

// argumentsOf names the arguments of a tool, those that may be left out in brackets.
func argumentsOf(tool *mcp.Tool) string {
	schema, _ := tool.InputSchema.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	var names []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(required, any(name)) {
			name = "[" + name + "]"
		}
		names = append(names, name)
	}
	return cmp.Or(strings.Join(names, " "), "-")
}

// maxDescription is how much of a description stands in a table, in characters.
const maxDescription = 100

func firstLine(s string) string {
	line, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	runes := []rune(terminalLine(strings.TrimSpace(line)))
	if len(runes) > maxDescription {
		return string(runes[:maxDescription-1]) + "…"
	}
	if more {
		return string(runes) + " …"
	}
	return string(runes)
}

// printResult prints what a tool answered: its text as it is, the rest by name.
func printResult(w io.Writer, result *mcp.CallToolResult) {
	for _, content := range result.Content {
		_, _ = fmt.Fprintln(w, contentText(content))
	}
	if len(result.Content) > 0 || result.StructuredContent == nil {
		return
	}
	if data, err := json.MarshalIndent(result.StructuredContent, "", "  "); err == nil {
		_, _ = fmt.Fprintln(w, printable.JSON(data))
	}
}

func contentText(content mcp.Content) string {
	switch content := content.(type) {
	case *mcp.TextContent:
		return printable.Text(content.Text)
	case *mcp.ImageContent:
		return blobText("image", content.MIMEType, len(content.Data))
	case *mcp.AudioContent:
		return blobText("sound", content.MIMEType, len(content.Data))
	case *mcp.ResourceLink:
		return fmt.Sprintf("[link: %s %s]", terminalLine(cmp.Or(content.Title, content.Name)), terminalLine(content.URI))
	case *mcp.EmbeddedResource:
		if content.Resource == nil {
			return "[resource without content]"
		}
		if content.Resource.Blob == nil {
			return fmt.Sprintf("[resource: %s]\n%s", terminalLine(content.Resource.URI), printable.Text(content.Resource.Text))
		}
		return blobText("resource "+terminalLine(content.Resource.URI), content.Resource.MIMEType, len(content.Resource.Blob))
	}
	return "[content of a kind that this command does not know]"
}

func blobText(what, mimeType string, size int) string {
	return fmt.Sprintf("[%s: %s, %d bytes; --json has them]", what, terminalLine(cmp.Or(mimeType, "no type")), size)
}
