package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/resourceserver/mcpsdk"
)

// maxNotes bounds one person's notes; they live in memory.
const maxNotes = 1000

// notebook keeps each person's notes apart.
type notebook struct {
	mu    sync.Mutex
	notes map[string][]string
}

func newServer(n *notebook) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Title: "Notes", Version: "1.0.0"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "list_notes", Description: "List your notes",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, n.list)
	mcp.AddTool(s, &mcp.Tool{Name: "add_note", Description: "Add a note"}, n.add)
	return s
}

type listInput struct{}

func (n *notebook) list(_ context.Context, req *mcp.CallToolRequest, _ listInput) (*mcp.CallToolResult, any, error) {
	person, err := personOf(req)
	if err != nil {
		return nil, nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.notes[person]) == 0 {
		return text("You have no notes."), nil, nil
	}
	return text(strings.Join(n.notes[person], "\n")), nil, nil
}

type addInput struct {
	Text string `json:"text" jsonschema:"the note, one line"`
}

func (n *notebook) add(_ context.Context, req *mcp.CallToolRequest, in addInput) (*mcp.CallToolResult, any, error) {
	person, err := personOf(req)
	if err != nil {
		return nil, nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.notes[person]) >= maxNotes {
		return nil, nil, fmt.Errorf("you have %d notes already", maxNotes)
	}
	if n.notes == nil {
		n.notes = map[string][]string{}
	}
	n.notes[person] = append(n.notes[person], in.Text)
	return text("Noted."), nil, nil
}

// personOf tells whose call this is.
func personOf(req *mcp.CallToolRequest) (string, error) {
	token, ok := mcpsdk.Token(req)
	if !ok {
		return "", errors.New("the call carries no token")
	}
	return token.Subject, nil
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
