package stdio

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// posting is one POST: messages for the child, and the answer to it.
type posting struct {
	answer
	bridge  *Bridge
	session *session
	list    []message
	batch   bool
	modern  bool
	begins  bool // the session, by initialize
	begun   bool // initialize was answered well
}

// serve passes the messages on, and waits until the calls among them are answered.
func (p *posting) serve(ctx context.Context) {
	s := p.session
	if p.begins {
		// Nobody will come back for a session whose id was never told.
		defer func() {
			if !p.begun {
				s.end("initialize did not succeed")
			}
		}()
	}
	ex := newExchange()
	lines, early, err := s.register(ex, p.list)
	if err != nil {
		p.refuse(ctx, err)
		return
	}
	defer s.unregister(ex)
	calls := 0
	for _, m := range p.list {
		if m.isCall() {
			calls++
		}
	}
	if calls == 0 {
		if err := s.send(ctx, lines); err != nil {
			p.refuse(ctx, err)
			return
		}
		p.w.WriteHeader(http.StatusAccepted)
		return
	}
	// While the child does not read it may write, so both happen at once. That it is
	// gone is told to who waits.
	go func() { _ = s.send(ctx, lines) }()
	p.wait(ctx, ex, calls, early)
}

func (p *posting) refuse(ctx context.Context, err error) {
	switch {
	case errors.Is(err, errGone) && p.modern:
		err = refuse(http.StatusServiceUnavailable, codeUnavailable, "the MCP server has just ended; try again")
	case errors.Is(err, errGone):
		err = errNoSession
	}
	p.bridge.fail(p.w, p.bridge.explain(ctx, err, ""), p.list[0].top["id"])
}

func (p *posting) wait(ctx context.Context, ex *exchange, calls int, early [][]byte) {
	for _, raw := range early {
		if p.event(raw) != nil {
			return
		}
	}
	beat := time.NewTicker(p.bridge.heartbeat)
	defer beat.Stop()
	for calls > 0 {
		e := event{}
		select {
		case e = <-ex.out:
		case <-beat.C:
		case <-ctx.Done():
			return
		}
		if e.answers {
			calls--
		}
		if p.write(e) != nil {
			return
		}
	}
}

// write writes one message: as plain JSON when it is all there is to say, which
// every client reads and every proxy forwards at once.
func (p *posting) write(e event) error {
	if p.begins && !p.stream && e.failed == nil {
		p.w.Header().Set(headerSession, p.session.id)
	}
	p.begun = p.begun || e.answers && e.failed == nil && e.raw != nil
	if p.stream || !e.answers || p.batch {
		if e.answers && e.raw == nil && p.stream {
			return nil
		}
		return p.event(e.raw)
	}
	if e.raw == nil { // cancelled
		return p.event(nil)
	}
	writeJSON(p.w, p.status(e), e.raw)
	return nil
}

func (p *posting) status(e event) int {
	switch {
	case p.begins && e.died:
		return http.StatusBadGateway
	case !p.modern || e.failed == nil:
		return http.StatusOK
	}
	// MCP 2026-07-28, transports: errors of the protocol have a status.
	switch e.failed.Code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInvalidParams, mcp.CodeUnsupportedProtocolVersion, mcp.CodeMissingRequiredClientCapabilities:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
