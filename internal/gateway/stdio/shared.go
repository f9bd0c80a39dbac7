package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A shared child serves requests of several conversations (2026-07-28), whose ids
// and progress tokens may be the same: the child gets numbers of ours, and what it
// says is given its numbers back.

// Why a client of 2026-07-28 is not served. What a child says by errLegacy holds
// for the command, whoever asks; errUnclear is one child's failure to say anything.
var (
	errLegacy  = errors.New("the MCP server does not speak this revision of the protocol; begin with initialize")
	errUnclear = errors.New("the MCP server did not say whether it speaks this revision of the protocol; begin with initialize")
)

// legacyVersions are the revisions that begin with initialize.
var legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26"}

// probe asks a new child whether it speaks without initialize (MCP 2026-07-28,
// versioning: server/discover). The question is always the same, so that no client
// has a part in the answer, which others may be given too. What else the child says
// is the clients' to find out.
func (s *session) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.b.probeFor)
	defer cancel()
	ex := newExchange()
	defer s.unregister(ex)
	ask, err := readMessage(encode(map[string]any{"jsonrpc": "2.0", "id": 0, "method": methodDiscover,
		"params": map[string]any{"_meta": map[string]any{mcp.MetaKeyProtocolVersion: modernVersion,
			mcp.MetaKeyClientInfo:         map[string]string{"name": "ostiary-gateway", "version": "1"},
			mcp.MetaKeyClientCapabilities: struct{}{}}}}))
	if err != nil {
		return err
	}
	lines, _, err := s.register(ex, []message{ask})
	if err != nil {
		return err
	}
	if err := s.send(ctx, lines); err != nil {
		return err
	}
	for {
		select {
		case e := <-ex.out:
			if e.answers {
				return probed(e)
			}
		case <-ctx.Done():
			return errUnclear // old servers may wait for initialize in silence
		}
	}
}

func probed(e event) error {
	switch {
	case e.died:
		return errGone
	case e.failed == nil:
		return nil
	case e.failed.Code == jsonrpc.CodeMethodNotFound:
		return errLegacy
	case e.failed.Code != mcp.CodeUnsupportedProtocolVersion:
		return errUnclear
	}
	var data mcp.UnsupportedProtocolVersionData
	if json.Unmarshal(e.failed.Data, &data) == nil && slices.ContainsFunc(data.Supported, isModern) {
		return nil // a later revision, without initialize too
	}
	return errLegacy
}

// translateCall gives a call of a shared child a number of ours. It is called with
// mu held, as translateNote is.
func (s *session) translateCall(m message) (message, jsonrpc.ID) {
	if s.id != "" {
		return m, m.request().ID
	}
	s.lastID++
	number := json.RawMessage(strconv.FormatInt(s.lastID, 10))
	changes := object{"id": number}
	if params := m.params(); len(m.progressToken()) > 0 {
		meta := edit(members(params["_meta"]), object{"progressToken": number})
		changes["params"] = encode(edit(params, object{"_meta": encode(meta)}))
	}
	m = m.with(changes)
	return m, m.request().ID
}

// translateNote names the request that is cancelled as the child knows it. Where
// that is not certain nothing is cancelled: since 2026-07-28 clients close the
// stream anyway.
func (s *session) translateNote(m message) []message {
	if s.id != "" || m.request().Method != noteCancelled {
		return []message{m}
	}
	params := m.params()
	var numbers []jsonrpc.ID
	for number, c := range s.calls {
		if bytes.Equal(c.id, params["requestId"]) {
			numbers = append(numbers, number)
		}
	}
	if len(numbers) != 1 {
		return nil
	}
	return []message{m.with(object{"params": encode(edit(params, object{"requestId": encode(numbers[0].Raw())}))})}
}

// abandoned tells a shared child that nobody waits any more: since 2026-07-28 a
// client cancels by closing the stream. It is called with mu held.
func (s *session) abandoned(number jsonrpc.ID) {
	if s.id != "" || s.dead || s.child == nil {
		return
	}
	line := append(encode(map[string]any{"jsonrpc": "2.0", "method": noteCancelled,
		"params": map[string]any{"requestId": number.Raw(), "reason": "the client has closed the stream"}}), '\n')
	go s.tell(s.child, line)
}

// tell sends a line that nobody waits for.
func (s *session) tell(c *child, line []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.send(ctx, line) // a child that does not read is not told
}

// restoreAnswer gives an answer the client's id back.
func restoreAnswer(m message, c *call) message {
	changes := object{"id": c.id}
	result := members(m.top["result"])
	if meta := members(result["_meta"]); len(meta[mcp.MetaKeySubscriptionID]) > 0 {
		meta = edit(meta, object{mcp.MetaKeySubscriptionID: c.id})
		changes["result"] = encode(edit(result, object{"_meta": encode(meta)}))
	}
	return m.with(changes)
}

// routeShared passes a notification on to the request that it names, or to the
// only one there is. What may belong to any of several goes to nobody.
func (s *session) routeShared(m message) {
	if m.isCall() {
		// Since 2026-07-28 servers ask in their answers, never by requests.
		s.mu.Lock()
		c := s.child
		s.mu.Unlock()
		s.tell(c, append(rpcError(m.top["id"], &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
			Message: "there are no requests to clients in this revision"}), '\n'))
		return
	}
	ex, raw := s.relate(m)
	if ex == nil || !ex.deliver(event{raw: raw}) {
		s.log.Debug("MCP server wrote a notification that belongs to no request")
	}
}

func (s *session) relate(m message) (*exchange, []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	params := m.params()
	if id, ok := idOf(params["progressToken"]); ok && m.request().Method == noteProgress {
		c := s.calls[id]
		if c == nil {
			return nil, nil
		}
		return c.exchange, m.with(object{"params": encode(edit(params, object{"progressToken": c.token}))}).raw
	}
	meta := members(params["_meta"])
	if id, ok := idOf(meta[mcp.MetaKeySubscriptionID]); ok {
		c := s.calls[id]
		if c == nil {
			return nil, nil
		}
		meta = edit(meta, object{mcp.MetaKeySubscriptionID: c.id})
		return c.exchange, m.with(object{"params": encode(edit(params, object{"_meta": encode(meta)}))}).raw
	}
	waiting := slices.DeleteFunc(slices.Clone(s.exchanges), func(ex *exchange) bool { return ex.left() || ex.subscribes })
	if len(waiting) == 1 {
		return waiting[0], m.raw
	}
	return nil, nil
}
