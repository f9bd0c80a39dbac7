package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Methods that the bridge itself must know.
const (
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
	methodListen     = "subscriptions/listen"
	noteCancelled    = "notifications/cancelled"
	noteProgress     = "notifications/progress"
)

const maxBatch = 100 // messages in one body, as resourceserver reads

type object = map[string]json.RawMessage

// message is one JSON-RPC message: as the SDK reads it, and as it was written,
// which is what is passed on.
type message struct {
	raw []byte // on one line, without its end
	top object
	rpc jsonrpc.Message
}

// request returns the request or notification; nil for an answer.
func (m message) request() *jsonrpc.Request {
	r, _ := m.rpc.(*jsonrpc.Request)
	return r
}

// answer returns the answer; nil for a request or notification.
func (m message) answer() *jsonrpc.Response {
	r, _ := m.rpc.(*jsonrpc.Response)
	return r
}

// isCall reports a request that wants an answer.
func (m message) isCall() bool {
	r := m.request()
	return r != nil && r.IsCall()
}

// readMessages reads a message, or a batch of them (2025-03-26 alone has those).
func readMessages(data []byte) (list []message, batch bool, err error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, false, errors.New("this is not JSON in UTF-8")
	}
	data = bytes.Trim(data, " \t\r\n")
	if data[0] != '[' {
		m, err := readMessage(data)
		return []message{m}, false, err
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil || len(parts) == 0 || len(parts) > maxBatch {
		return nil, true, errors.New("the batch is empty or has too many messages")
	}
	for _, part := range parts {
		m, err := readMessage(part)
		if err != nil {
			return nil, true, err
		}
		list = append(list, m)
	}
	return list, true, nil
}

func readMessage(data []byte) (message, error) {
	m := message{raw: data}
	if bytes.ContainsAny(data, "\r\n") { // between tokens: strings have none
		var one bytes.Buffer
		if err := json.Compact(&one, data); err != nil {
			return m, err
		}
		m.raw = one.Bytes()
	}
	var err error
	if m.rpc, err = jsonrpc.DecodeMessage(m.raw); err != nil {
		return m, errors.New("this is not a message of JSON-RPC 2.0")
	}
	if err := json.Unmarshal(m.raw, &m.top); err != nil {
		return m, err
	}
	return m, checkID(m)
}

// checkID refuses ids that the SDK would round: an answer to 1.5 must not go to
// who asked 1.
func checkID(m message) error {
	id := m.request()
	var value any
	if id != nil {
		value = id.ID.Raw()
	} else {
		value = m.answer().ID.Raw()
	}
	if n, ok := value.(int64); ok && strconv.FormatInt(n, 10) != string(m.top["id"]) {
		return errors.New("id is neither a string nor a whole number")
	}
	return nil
}

// params returns the members of a request's params; empty when it has none.
func (m message) params() object { return members(m.top["params"]) }

// members returns those of an object; an empty map for anything else.
func members(raw json.RawMessage) object {
	var o object
	if json.Unmarshal(raw, &o) != nil || o == nil {
		return object{}
	}
	return o
}

// progressToken is what progress notifications about the request will carry.
func (m message) progressToken() json.RawMessage {
	return members(m.params()["_meta"])["progressToken"]
}

// version is the revision that a request of 2026-07-28 and later says it is of.
func (m message) version() string {
	var v string
	_ = json.Unmarshal(members(m.params()["_meta"])[mcp.MetaKeyProtocolVersion], &v)
	return v
}

// with returns the message with some members changed.
func (m message) with(changes object) message {
	top := edit(m.top, changes)
	out := message{raw: encode(top), top: top}
	out.rpc, _ = jsonrpc.DecodeMessage(out.raw)
	return out
}

// edit returns a copy of o with the changes.
func edit(o, changes object) object {
	out := make(object, len(o)+len(changes))
	for name, value := range o {
		out[name] = value
	}
	for name, value := range changes {
		out[name] = value
	}
	return out
}

// encode writes v on one line, and leaves < and > as they are.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // what is encoded here always can be
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// rpcError is a JSON-RPC error answer to the message with this id, as written.
func rpcError(id json.RawMessage, e *jsonrpc.Error) []byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	return encode(map[string]any{"jsonrpc": "2.0", "id": id, "error": e})
}
