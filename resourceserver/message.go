package resourceserver

import (
	"bytes"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// maxBatch bounds the messages of one batch (MCP 2025-03-26 alone has batches).
const maxBatch = 100

// message is what one JSON-RPC message of a client asks for.
type message struct {
	id     []byte // as written; nil in a notification
	method string // "" in an answer to the server
	name   string // what the method acts on; "" when it names nothing
	params strictjson.Object
	// version is the revision that the message says it is of, since 2026-07-28.
	version string
	ops     []Operation // what the table is asked for
	// completes is the method whose entries count for a completion that the
	// table does not list.
	completes string
}

// namedBy tells which member of params names what the method acts on.
var namedBy = map[string]string{
	"tools/call":            "name",
	"prompts/get":           "name",
	"resources/read":        "uri",
	"resources/subscribe":   "uri",
	"resources/unsubscribe": "uri",
}

// Member names that servers look for, folded; see checkCase.
var (
	messageNames = foldedNames("jsonrpc", "id", "method", "params", "result", "error")
	paramNames   = foldedNames("name", "uri", "arguments", "_meta", "ref", "argument", "context", "cursor",
		"taskId", "notifications", "resourceSubscriptions", "requestState", "inputResponses")
	refNames = foldedNames("type", "name", "uri")
)

// readMessages reads a JSON-RPC body: one message, or a batch of them.
func readMessages(body []byte) (list []message, batch bool, err error) {
	if !utf8.Valid(body) {
		return nil, false, errors.New("the body is not UTF-8")
	}
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '[' {
		m, err := readMessage(body)
		return []message{m}, false, err
	}
	elems, err := readArray(body, maxBatch)
	if err != nil || len(elems) == 0 {
		return nil, true, errors.New("the batch is not JSON, is empty or has too many messages")
	}
	for _, e := range elems {
		m, err := readMessage(e.Value)
		if err != nil {
			return nil, true, err
		}
		list = append(list, m)
	}
	return list, true, nil
}

// readMessage reads one message. The id is set as soon as it is known, also
// beside an error, so that the refusal can name it.
func readMessage(raw []byte) (message, error) {
	o, err := readObject(raw)
	if err != nil {
		return message{}, errors.New("a message is not a JSON object with unique members")
	}
	if err := checkCase(o, messageNames); err != nil {
		return message{}, err
	}
	m := message{}
	if m.id, err = readID(o); err != nil || !o.Has("method") {
		return m, err
	}
	var ok bool
	if m.method, ok = o.Str("method"); !ok || !isPlain(m.method) {
		return m, errors.New("method is not a plain string")
	}
	if m.params, err = readParams(o.Get("params")); err != nil {
		return m, err
	}
	if err := m.readMeta(); err != nil {
		return m, err
	}
	return m, m.readOperations()
}

// readID checks what belongs to a message of its kind: an id is a string or a
// number, and what has no method is an answer to the server.
func readID(o strictjson.Object) ([]byte, error) {
	id := o.Get("id")
	if len(id) > 0 && strings.IndexByte(`"-0123456789`, id[0]) < 0 {
		if !bytes.Equal(id, []byte("null")) {
			return nil, errors.New("id is neither a string nor a number")
		}
		id = nil
	}
	if !o.Has("method") && !o.Has("result") && !o.Has("error") {
		return id, errors.New("a message has neither a method nor a result")
	}
	return id, nil
}

// readParams wants an object: MCP has no parameters by position. Absent and null
// are an empty one.
func readParams(raw []byte) (strictjson.Object, error) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, nil
	}
	params, err := readObject(raw)
	if err != nil {
		return nil, errors.New("params is not a JSON object with unique members")
	}
	return params, checkCase(params, paramNames)
}

// readMeta reads what a header must agree with.
func (m *message) readMeta() error {
	raw := m.params.Get("_meta")
	if !startsWith(raw, '{') {
		return nil
	}
	meta, err := readObject(raw)
	if err != nil {
		return errors.New("_meta is not a JSON object with unique members")
	}
	if m.version, _ = meta.Str(metaVersion); m.version == "" && meta.Has(metaVersion) {
		return errors.New("_meta has a protocolVersion that is not a string")
	}
	return nil
}

// readOperations sets what the message acts on.
func (m *message) readOperations() (err error) {
	switch m.method {
	case methodComplete:
		return m.readCompletion()
	case methodListen:
		m.ops, err = m.subscriptions()
		return err
	}
	if member := namedBy[m.method]; member != "" && !m.wasRemoved() {
		var ok bool
		if m.name, ok = m.params.Str(member); !ok || !isPlain(m.name) {
			return errors.New("params does not name what the method acts on")
		}
	}
	m.ops = []Operation{{Method: m.method, Name: m.name}}
	return nil
}

// wasRemoved reports a method that the message's revision has no more, without
// the name that it had: whether such a method exists is the server's to say.
func (m *message) wasRemoved() bool {
	return (m.method == "resources/subscribe" || m.method == "resources/unsubscribe") && !m.params.Has("uri") &&
		isVersion(m.version) && m.version >= versionMirrors
}

// readCompletion names the prompt or the resource whose values are completed.
func (m *message) readCompletion() error {
	ref, err := readObject(m.params.Get("ref"))
	if err == nil {
		err = checkCase(ref, refNames)
	}
	kind, _ := ref.Str("type")
	name, hasName := ref.Str("name")
	uri, hasURI := ref.Str("uri")
	switch {
	case err == nil && kind == "ref/prompt" && hasName && !ref.Has("uri") && isPlain(name):
		m.completes = "prompts/get"
	case err == nil && kind == "ref/resource" && hasURI && !ref.Has("name") && isPlain(uri):
		m.completes = "resources/read"
	default:
		return errors.New("params does not name what is completed")
	}
	m.ops = []Operation{{Method: m.method, Name: name + uri}}
	return nil
}

// subscriptions names the method and each resource whose changes are told.
func (m *message) subscriptions() ([]Operation, error) {
	ops := []Operation{{Method: m.method}}
	if !m.params.Has("notifications") {
		return ops, nil
	}
	wanted, err := readObject(m.params.Get("notifications"))
	if err == nil {
		err = checkCase(wanted, paramNames)
	}
	if err != nil {
		return nil, errors.New("notifications is not a JSON object with unique members")
	}
	if !wanted.Has("resourceSubscriptions") {
		return ops, nil
	}
	list := wanted.Get("resourceSubscriptions")
	elems, err := readArray(list, bodyBounds.Members)
	if err != nil {
		return nil, errors.New("resourceSubscriptions is not an array")
	}
	for _, e := range elems {
		uri, ok := strictjson.String(e.Value)
		if !ok || !isPlain(uri) {
			return nil, errors.New("resourceSubscriptions has something that is not a plain string")
		}
		ops = append(ops, Operation{Method: "resources/subscribe", Name: uri})
	}
	return ops, nil
}

// isPlain reports a name that means the same to every parser: a NUL ends it in
// some languages, a line break in some logs, and half a surrogate pair, which
// encoding/json reads as U+FFFD, is kept by others.
func isPlain(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) })
}
