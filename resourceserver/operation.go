package resourceserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// Operation is what one JSON-RPC message asks an MCP server to do, as the key
// of Options.Operations. An entry with a Name stands for that tool, prompt or
// resource; one without stands for every operation of the Method.
type Operation struct {
	// Method is the JSON-RPC method, e.g. "tools/call".
	Method string
	// Name is the tool's or prompt's name, or the resource's URI.
	Name string
}

// maxBatch bounds the messages of one batch (MCP 2025-03-26 alone has batches).
const maxBatch = 100

// namedBy tells which member of params names what the method acts on. Methods
// that are not here (initialize, ping, tools/list and others) act on nothing
// in particular: a valid token suffices unless Options.Operations lists them.
var namedBy = map[string]string{
	"tools/call":            "name",
	"prompts/get":           "name",
	"resources/read":        "uri",
	"resources/subscribe":   "uri",
	"resources/unsubscribe": "uri",
}

// checkOperations reads the body of r, asks the table for each message in it,
// and leaves r with the same bytes to read again: what was checked is what is
// forwarded.
func (s *Server) checkOperations(w http.ResponseWriter, r *http.Request, t *Token) error {
	body, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	ops, err := readOperations(body)
	if err != nil {
		return badBody(err)
	}
	var needed []string
	for _, op := range ops {
		scopes, ok := s.scopesFor(op)
		if !ok {
			return &refusal{status: http.StatusForbidden, code: "access_denied",
				description: "no scope opens this operation"}
		}
		needed = append(needed, scopes...)
	}
	if !t.HasScopes(needed...) {
		return insufficientScope(t, needed)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, badBody(errors.New("the body must not have a Content-Encoding"))
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.opts.MaxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		e := badBody(errors.New("the body is too large"))
		e.status = http.StatusRequestEntityTooLarge
		return nil, e
	}
	if err != nil {
		return nil, badBody(errors.New("the body could not be read"))
	}
	return body, nil
}

// scopesFor returns what op needs; false when nobody may do it.
func (s *Server) scopesFor(op Operation) ([]string, bool) {
	if scopes, ok := s.opts.Operations[op]; ok {
		return scopes, true
	}
	if scopes, ok := s.opts.Operations[Operation{Method: op.Method}]; ok {
		return scopes, true
	}
	if namedBy[op.Method] == "" {
		return nil, true
	}
	return s.opts.DefaultScopes, s.opts.DefaultScopes != nil
}

// readOperations returns the operations of a JSON-RPC body, which is one
// message or a batch of them. Responses to the server have no method and are
// left out.
func readOperations(body []byte) ([]Operation, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("the body is not UTF-8")
	}
	messages := []json.RawMessage{body}
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		messages = nil // or Unmarshal would write into body
		if err := json.Unmarshal(body, &messages); err != nil {
			return nil, errors.New("the body is not JSON")
		}
	}
	if len(messages) == 0 || len(messages) > maxBatch {
		return nil, errors.New("the batch is empty or has too many messages")
	}
	var ops []Operation
	for _, m := range messages {
		op, ok, err := readOperation(m)
		if err != nil {
			return nil, err
		}
		if ok {
			ops = append(ops, op)
		}
	}
	return ops, nil
}

// readOperation reads one message. A member whose name differs from one of
// ours by case alone is refused: encoding/json behind us would take "Method"
// for method, and others would not.
func readOperation(message []byte) (Operation, bool, error) {
	m, err := readObject(message)
	if err != nil {
		return Operation{}, false, errors.New("a message is not a JSON object with unique members")
	}
	if !exactCase(m, "jsonrpc", "id", "method", "params", "result", "error") {
		return Operation{}, false, errors.New("a member's name differs by case from the one of JSON-RPC")
	}
	if !m.has("method") {
		return Operation{}, false, nil
	}
	method, ok := m.str("method")
	if !ok {
		return Operation{}, false, errors.New("method is not a string")
	}
	op := Operation{Method: method}
	member := namedBy[method]
	if member == "" {
		return op, true, nil
	}
	params, err := readObject(m["params"])
	if err != nil || !exactCase(params, "name", "uri", "arguments", "_meta") {
		return Operation{}, false, errors.New("params is not a JSON object with unique members")
	}
	if op.Name, ok = params.str(member); !ok {
		return Operation{}, false, errors.New("params does not name what the method acts on")
	}
	return op, true, nil
}

func exactCase(o object, names ...string) bool {
	for have := range o {
		if slices.ContainsFunc(names, func(n string) bool { return have != n && strings.EqualFold(have, n) }) {
			return false
		}
	}
	return true
}

// badBody is 400 with a JSON-RPC error, which is what MCP clients show.
func badBody(err error) *refusal {
	const invalidRequest = -32600 // JSON-RPC 2.0 §5.1
	return &refusal{status: http.StatusBadRequest, code: "invalid_request", rpcCode: invalidRequest,
		description: err.Error()}
}
