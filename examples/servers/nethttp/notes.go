package main

import (
	"strings"
	"sync"
)

// notes keeps each person's notes apart.
type notes struct {
	mu sync.Mutex
	of map[string][]string
}

// tools is what tools/list answers.
var tools = []object{
	{"name": "list_notes", "description": "List your notes", "inputSchema": object{"type": "object"}},
	{"name": "add_note", "description": "Add a note", "inputSchema": object{"type": "object",
		"properties": object{"text": object{"type": "string"}}, "required": []string{"text"}}},
}

func (n *notes) list(person string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return "Your notes: " + strings.Join(n.of[person], "; ")
}

func (n *notes) add(person, text string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[string][]string{}
	}
	n.of[person] = append(n.of[person], text)
	return "Noted."
}
