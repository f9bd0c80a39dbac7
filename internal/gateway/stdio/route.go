package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const maxQueue = 64 // messages nobody listens to

// logLine hears a line of standard error.
func (s *session) logLine(line []byte, cut bool) {
	s.lines.add(slog.LevelInfo, "MCP server says", bytes.TrimRight(line, "\r"), cut)
}

// receive hears a line of standard output.
func (s *session) receive(line []byte, cut bool) {
	if cut {
		s.tooLong()
		return
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	list, _, err := readMessages(line)
	if err != nil {
		s.lines.add(slog.LevelWarn, "MCP server wrote what is no message to its standard output", line[:min(len(line), maxLogLine)], len(line) > maxLogLine)
		return
	}
	for _, m := range list {
		s.route(m)
	}
}

// tooLong answers all who wait: one of them will never be answered, and the
// message that would tell whom it is for was not kept.
func (s *session) tooLong() {
	s.log.Warn("MCP server wrote a message that is too long; it was dropped", slog.Int64("limit", s.b.opts.MaxMessage))
	s.mu.Lock()
	left := s.calls
	s.calls = map[jsonrpc.ID]*call{}
	s.mu.Unlock()
	for _, c := range left {
		c.fail(fmt.Sprintf("the MCP server wrote a message of more than %d bytes", s.b.opts.MaxMessage))
	}
}

// route passes a message of the child on to who should have it.
func (s *session) route(m message) {
	if a := m.answer(); a != nil {
		s.answer(m, a)
		return
	}
	if s.id == "" {
		s.routeShared(m)
		return
	}
	for {
		ex := s.target(m)
		if ex == nil || ex.deliver(event{raw: m.raw}) {
			return
		}
	}
}

func (s *session) answer(m message, a *jsonrpc.Response) {
	s.mu.Lock()
	c := s.calls[a.ID]
	delete(s.calls, a.ID)
	s.mu.Unlock()
	if c == nil {
		s.log.Debug("MCP server answered what nobody waits for")
		return
	}
	if s.id == "" {
		m = restoreAnswer(m, c)
	}
	e := event{raw: m.raw, answers: true}
	_ = errors.As(a.Error, &e.failed)
	c.exchange.deliver(e)
}

// target returns who gets a request or notification of the child; nil when it was
// queued. It does not say to which request it belongs, but for progress. While one
// request alone is open it most likely does; otherwise the GET stream is for it.
func (s *session) target(m message) *exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.request().Method == noteProgress {
		token := m.params()["progressToken"]
		for _, c := range s.calls {
			if len(token) > 0 && bytes.Equal(c.token, token) && !c.exchange.left() {
				return c.exchange
			}
		}
	}
	waiting := slices.DeleteFunc(slices.Clone(s.exchanges), (*exchange).left)
	switch {
	case len(waiting) == 1:
		return waiting[0]
	case s.listener != nil && !s.listener.left():
		return s.listener
	case len(waiting) > 0:
		return waiting[len(waiting)-1]
	}
	s.enqueue(m.raw)
	return nil
}

func (s *session) enqueue(raw []byte) {
	if len(s.queue) >= maxQueue || s.queued+len(raw) > int(s.b.opts.MaxMessage) {
		s.log.Warn("nobody listens to the MCP server; a message was dropped")
		return
	}
	s.queue = append(s.queue, raw)
	s.queued += len(raw)
}
