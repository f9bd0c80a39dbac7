package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
)

// JSON-RPC 2.0 §5.1: error codes.
const (
	codeInvalidRequest = -32600
	codeInternalError  = -32603
)

// errUnexpectedBody refuses the body of a GET or DELETE: two servers could differ
// on where it ends.
var errUnexpectedBody = errors.New("a body comes with POST")

func refuseBody(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		writeJSON(w, http.StatusRequestEntityTooLarge, rpcBody(nil, codeInvalidRequest, "the body is too large"))
	case errors.Is(err, errUnexpectedBody):
		writeJSON(w, http.StatusBadRequest, oauthBody("invalid_request", err.Error()))
	default:
		writeJSON(w, http.StatusBadRequest, rpcBody(nil, codeInvalidRequest, "the body could not be read"))
	}
}

// writeFailure answers a JSON-RPC request with a JSON-RPC error and everything
// else with an OAuth-like one, as resourceserver does.
func writeFailure(w http.ResponseWriter, status int, text string, request []byte) {
	if id, ok := rpcID(request); ok {
		writeJSON(w, status, rpcBody(id, codeInternalError, text))
		return
	}
	code := "bad_gateway"
	if status == http.StatusGatewayTimeout {
		code = "gateway_timeout"
	}
	writeJSON(w, status, oauthBody(code, text))
}

// rpcID returns the id of a JSON-RPC request, nil for a batch or a notification;
// false when body is no JSON-RPC.
func rpcID(body []byte) (json.RawMessage, bool) {
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
	}
	if json.Unmarshal(body, &m) != nil {
		var batch []struct {
			Version string `json:"jsonrpc"`
		}
		return nil, json.Unmarshal(body, &batch) == nil && len(batch) > 0 && batch[0].Version == "2.0"
	}
	if len(m.ID) == 0 || m.ID[0] == '{' || m.ID[0] == '[' {
		m.ID = nil
	}
	return m.ID, m.Version == "2.0"
}

func rpcBody(id json.RawMessage, code int, message string) any {
	return map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": message}}
}

func oauthBody(code, description string) any {
	return map[string]string{"error": code, "error_description": description}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
