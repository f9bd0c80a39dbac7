package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// session is one child and the requests that wait for it. With an id it belongs
// to one client's session and messages pass unchanged; without one it is shared by
// all requests of its owner, see shared.go.
type session struct {
	b     *Bridge
	owner owner
	id    string
	log   *slog.Logger
	lines *lineLog
	gone  chan struct{} // closed when the process is gone

	ready    chan struct{} // of a shared one: closed when it is started, or cannot be
	startErr error

	// Guarded by Bridge.mu.
	open    int       // requests that are being served
	usedAt  time.Time // when that changed
	expires time.Time // of the last token seen; zero: never
	forever bool
	ending  bool
	awaited bool // ending, and somebody waits for its room

	mu        sync.Mutex
	child     *child
	reason    string // why it was ended; "" when it ended by itself
	dead      bool   // nothing is asked any more
	calls     map[jsonrpc.ID]*call
	lastID    int64
	exchanges []*exchange // with unanswered calls, oldest first
	listener  *exchange   // the GET stream
	queue     [][]byte    // what nobody listened to yet
	queued    int         // bytes of it
}

var (
	errDuplicate    = errors.New("a request with this id is not answered yet")
	errTooManyCalls = errors.New("there are too many unanswered requests")
)

func newSession(b *Bridge, o owner, id string) *session {
	log := b.opts.Log.With(slog.String("sub", o.subject), slog.String("client_id", o.client))
	return &session{b: b, owner: o, id: id, log: log, gone: make(chan struct{}), ready: make(chan struct{}),
		calls: map[jsonrpc.ID]*call{}}
}

// start starts the child. When it fails nothing is left.
func (s *session) start() error {
	env, err := identity(s.owner)
	if err != nil {
		return err
	}
	c, err := startChild(s.b.launcher, &exec.Cmd{Path: s.b.path, Args: s.b.opts.Command, Dir: s.b.opts.Dir, Env: slices.Concat(s.b.baseEnv, env)})
	if err != nil {
		return err
	}
	s.log = s.log.With(slog.Int("pid", c.cmd.Process.Pid))
	s.lines = newLineLog(s.log, s.b.opts.Now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.child = c
	c.run(int(s.b.opts.MaxMessage), s)
	s.log.Info("MCP server started")
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if s.ending { // Close came in between
		go c.stop(s.b.opts.StopTimeout)
	}
	return nil
}

// end makes the session unreachable at once and ends the child behind it.
func (s *session) end(reason string) {
	if s.b.retire(s) {
		s.stop(reason)
	}
}

// stop ends the child of a session that is unreachable, as the first to do so.
func (s *session) stop(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reason = reason
	if s.child != nil {
		go s.child.stop(s.b.opts.StopTimeout)
	}
}

func (s *session) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child != nil {
		s.child.closeInput()
		s.child.signal(killGroup)
	}
}

// ended hears that the process is gone: who waits is told.
func (s *session) ended(state string) {
	s.mu.Lock()
	s.dead = true
	left, reason := s.calls, s.reason
	s.calls = map[jsonrpc.ID]*call{}
	s.mu.Unlock()
	s.lines.flush()
	level := slog.LevelInfo
	if reason == "" {
		level, reason = slog.LevelWarn, "by itself"
	}
	s.log.Log(context.Background(), level, "MCP server ended", slog.String("reason", reason), slog.String("state", state))
	s.b.forget(s)
	for _, c := range left {
		c.fail("the MCP server has ended before it answered")
	}
}

// register notes the calls among list, which ex waits for, and returns what goes
// to the child and what was said before anybody listened.
func (s *session) register(ex *exchange, list []message) (lines []message, early [][]byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return nil, nil, errGone
	}
	calls := map[jsonrpc.ID]*call{}
	for _, m := range list {
		if !m.isCall() {
			lines = append(lines, s.translateNote(m)...)
			continue
		}
		c := &call{exchange: ex, id: m.top["id"], token: m.progressToken()}
		ex.subscribes = m.request().Method == methodListen
		m, id := s.translateCall(m)
		if s.calls[id] != nil || calls[id] != nil {
			return nil, nil, errDuplicate
		}
		calls[id] = c
		lines = append(lines, m)
	}
	if len(s.calls)+len(calls) > maxCalls {
		return nil, nil, errTooManyCalls
	}
	for id, c := range calls {
		s.calls[id] = c
	}
	if len(calls) > 0 {
		s.exchanges = append(s.exchanges, ex)
		if s.listener == nil {
			early = s.takeQueue()
		}
	}
	return lines, early, nil
}

// unregister forgets what ex has waited for.
func (s *session) unregister(ex *exchange) {
	ex.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges = slices.DeleteFunc(s.exchanges, func(other *exchange) bool { return other == ex })
	for id, c := range s.calls {
		if c.exchange == ex {
			delete(s.calls, id)
			s.abandoned(id)
		}
	}
	if s.listener == ex {
		s.listener = nil
	}
}

// listen makes ex the stream for what belongs to no request. It takes the place of
// an older one, whose connection may be dead without our knowing.
func (s *session) listen(ex *exchange) (early [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		s.listener.leave()
	}
	s.listener = ex
	return s.takeQueue()
}

func (s *session) takeQueue() [][]byte {
	queue := s.queue
	s.queue, s.queued = nil, 0
	return queue
}

// send gives the child the messages, one line each.
func (s *session) send(ctx context.Context, list []message) error {
	s.mu.Lock()
	c := s.child
	s.mu.Unlock()
	for _, m := range list {
		if err := c.send(ctx, append(slices.Clip(m.raw), '\n')); err != nil {
			return err
		}
		if r := m.request(); r != nil && r.Method == noteCancelled {
			s.cancelled(m)
		}
	}
	return nil
}

// cancelled ends the exchange of a request that the client has cancelled: servers
// answer those or not (MCP cancellation).
func (s *session) cancelled(m message) {
	id, ok := idOf(m.params()["requestId"])
	if !ok {
		return
	}
	s.mu.Lock()
	c := s.calls[id]
	delete(s.calls, id)
	s.mu.Unlock()
	if c != nil {
		c.exchange.deliver(event{answers: true})
	}
}

// idOf reads an id, as written.
func idOf(raw json.RawMessage) (jsonrpc.ID, bool) {
	var value any
	if json.Unmarshal(raw, &value) != nil || value == nil {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.MakeID(value)
	return id, err == nil
}
