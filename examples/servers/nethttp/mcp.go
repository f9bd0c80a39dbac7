package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// versions are the revisions of the protocol that this server speaks.
var versions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"}

type object = map[string]any

// message is a JSON-RPC request; without an id it is a notification.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string                `json:"protocolVersion"`
		Name            string                `json:"name"`
		Arguments       struct{ Text string } `json:"arguments"`
	} `json:"params"`
}

// notes is an MCP server that keeps each person's notes apart.
type notes struct {
	mu sync.Mutex
	of map[string][]string
}

// ServeHTTP answers one message; Protect has read and checked it already.
func (n *notes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost { // there are no streams and no sessions
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if m.ID == nil || m.Method == "" { // a notification, or an answer
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer := object{"jsonrpc": "2.0", "id": m.ID}
	token, _ := resourceserver.TokenFromContext(r.Context())
	if result := n.result(&m, token); result != nil {
		result["resultType"] = "complete"
		answer["result"] = result
	} else {
		answer["error"] = object{"code": -32601, "message": "there is no method " + m.Method}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// result is the answer to m; nil where there is no such method or tool.
func (n *notes) result(m *message, token *resourceserver.Token) object {
	info, can := object{"name": "notes", "version": "1.0.0"}, object{"tools": object{}}
	switch m.Method + " " + m.Params.Name {
	case "initialize ":
		version := m.Params.ProtocolVersion
		if !slices.Contains(versions[1:], version) {
			version = versions[1] // the newest that begins with initialize
		}
		return object{"protocolVersion": version, "capabilities": can, "serverInfo": info}
	case "server/discover ":
		return object{"supportedVersions": versions, "capabilities": can, "ttlMs": 0, "cacheScope": "private",
			"_meta": object{"io.modelcontextprotocol/serverInfo": info}}
	case "ping ":
		return object{}
	case "tools/list ":
		return object{"ttlMs": 0, "cacheScope": "private", "tools": []object{
			{"name": "list_notes", "description": "List your notes", "inputSchema": object{"type": "object"}},
			{"name": "add_note", "description": "Add a note", "inputSchema": object{"type": "object",
				"properties": object{"text": object{"type": "string"}}, "required": []string{"text"}}}}}
	case "tools/call list_notes":
		n.mu.Lock()
		defer n.mu.Unlock()
		return text("Your notes: " + strings.Join(n.of[token.Subject], "; "))
	case "tools/call add_note":
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.of == nil {
			n.of = map[string][]string{}
		}
		n.of[token.Subject] = append(n.of[token.Subject], m.Params.Arguments.Text)
		return text("Noted.")
	}
	return nil
}

func text(s string) object { return object{"content": []object{{"type": "text", "text": s}}} }
