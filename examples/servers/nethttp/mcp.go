package main

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// versions are the revisions of the protocol that this server speaks.
var versions = []string{"2026-07-28", "2025-11-25", "2025-06-18"}

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

// ServeHTTP answers one message. Protect has read and checked it already: what
// encoding/json reads differently from other parsers does not come here.
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
	token, _ := resourceserver.TokenFromContext(r.Context())
	answer := object{"jsonrpc": "2.0", "id": m.ID}
	if result := n.result(&m, token.Subject); result != nil {
		result["resultType"] = "complete"
		answer["result"] = result
	} else {
		answer["error"] = object{"code": -32601, "message": "there is no such method or tool"}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// result is the answer to m; nil where there is no such method or tool.
func (n *notes) result(m *message, person string) object {
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
		return object{"tools": tools, "ttlMs": 0, "cacheScope": "private"}
	case "tools/call list_notes":
		return text(n.list(person))
	case "tools/call add_note":
		return text(n.add(person, m.Params.Arguments.Text))
	}
	return nil
}

func text(s string) object { return object{"content": []object{{"type": "text", "text": s}}} }
