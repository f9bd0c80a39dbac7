package stdio

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ostiary-auth/ostiary/internal/ratelimit"
)

// Defaults of Options, and limits that nobody needs to change.
const (
	defaultMaxChildren   = 32
	defaultMaxPerSubject = 4
	defaultStarts        = 20
	defaultIdle          = 15 * time.Minute
	defaultGrace         = time.Minute
	defaultStopTimeout   = 5 * time.Second
	defaultMaxMessage    = 4 << 20

	sweepInterval     = 5 * time.Second
	heartbeatInterval = 15 * time.Second // less than the idle timeouts of usual proxies
	probeTimeout      = 30 * time.Second // npx and uvx may have to fetch the program first
	legacyMemory      = 5 * time.Minute  // how long the answer "not that revision" is believed
	maxCalls          = 256              // unanswered requests of one child
	retryAfter        = "10"             // seconds, beside a 503
)

// Options configures New. The zero value of every optional field is the safe default.
type Options struct {
	// Command is the MCP server's program and arguments. Required.
	Command []string
	// Dir is the children's working directory. Default: this process's.
	Dir string
	// Env are names of further variables of this process that children get. The
	// default is a short list (PATH, HOME, LANG and the like); OSTIARY_* is refused.
	Env []string
	// MaxChildren bounds the children of everybody together. Default 32.
	MaxChildren int
	// MaxPerSubject bounds those of one subject, so that nobody uses up
	// MaxChildren alone. Default 4, at most half of MaxChildren.
	MaxPerSubject int
	// StartsPerMinute bounds how often children are started for one subject: so many
	// at once, then one each part of a minute. Default 20.
	StartsPerMinute int
	// Idle is how long a child may live while no request is open. Default 15 minutes.
	Idle time.Duration
	// Grace is how long a child outlives the last token that was seen, for a client
	// that fetches a new one. Default 1 minute.
	Grace time.Duration
	// StopTimeout is how long a child may take to end once its input is closed,
	// and again after SIGTERM, before it is killed. Default 5 seconds.
	StopTimeout time.Duration
	// MaxMessage bounds one message in bytes, in both directions. Default 4 MiB.
	MaxMessage int64
	// Log gets starts and ends of children, and what they write to standard error.
	// Default: nothing is logged.
	Log *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Bridge is an http.Handler that stands behind resourceserver's Protect. Its
// methods may be called concurrently.
type Bridge struct {
	opts      Options
	path      string // of the program, absolute
	baseEnv   []string
	launcher  *launcher
	heartbeat time.Duration
	probeFor  time.Duration
	starts    *ratelimit.Limiter
	begin     sync.Once     // the sweeper
	stop      chan struct{} // closed by Close

	mu          sync.Mutex // also guards the fields of session that say so
	closed      bool
	sessions    map[string]*session // by Mcp-Session-Id
	shared      map[owner]*session  // for clients without sessions
	all         map[*session]bool   // until the process is gone: what the bounds count
	legacyUntil time.Time           // until then the command is believed not to speak 2026-07-28
}

// New checks o and returns a Bridge. No child is started before the first
// session. It joins all mistakes it finds.
func New(o Options) (*Bridge, error) {
	path, err := findCommand(o.Command)
	if err := errors.Join(err, checkLimits(o), checkEnvNames(o.Env)); err != nil {
		return nil, fmt.Errorf("stdio: %w", err)
	}
	setDefaults(&o)
	starts, err := newStarts(o)
	if err != nil {
		return nil, fmt.Errorf("stdio: %w", err)
	}
	return &Bridge{opts: o, path: path, baseEnv: allowedEnv(o.Env), launcher: newLauncher(), heartbeat: heartbeatInterval,
		probeFor: probeTimeout, starts: starts, stop: make(chan struct{}), sessions: map[string]*session{}, shared: map[owner]*session{},
		all: map[*session]bool{}}, nil
}

func findCommand(command []string) (string, error) {
	if len(command) == 0 || command[0] == "" {
		return "", errors.New("Options.Command is empty: give the MCP server's program and arguments")
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return "", fmt.Errorf("Options.Command: %w", err)
	}
	if path, err = filepath.Abs(path); err != nil { // a relative one would be looked up in Dir
		return "", fmt.Errorf("Options.Command: %w", err)
	}
	for _, arg := range command {
		if strings.ContainsRune(arg, 0) {
			return "", errors.New("Options.Command has a NUL character")
		}
	}
	return path, nil
}

func checkLimits(o Options) error {
	var errs []error
	if o.MaxChildren < 0 || o.MaxPerSubject < 0 || o.MaxMessage < 0 {
		errs = append(errs, errors.New("MaxChildren, MaxPerSubject and MaxMessage must not be negative"))
	}
	if o.StartsPerMinute < 0 {
		errs = append(errs, errors.New("StartsPerMinute must not be negative"))
	}
	if o.Idle < 0 || o.Grace < 0 || o.StopTimeout < 0 {
		errs = append(errs, errors.New("StopTimeout, Idle and Grace must not be negative"))
	}
	if o.MaxChildren > 0 && o.MaxPerSubject > o.MaxChildren {
		errs = append(errs, errors.New("MaxPerSubject is more than MaxChildren"))
	}
	return errors.Join(errs...)
}

func setDefaults(o *Options) {
	if o.MaxChildren == 0 {
		o.MaxChildren = max(defaultMaxChildren, o.MaxPerSubject)
	}
	if o.MaxPerSubject == 0 {
		o.MaxPerSubject = max(1, min(defaultMaxPerSubject, o.MaxChildren/2))
	}
	if o.StartsPerMinute == 0 {
		o.StartsPerMinute = defaultStarts
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = defaultMaxMessage
	}
	setDuration(&o.Idle, defaultIdle)
	setDuration(&o.Grace, defaultGrace)
	setDuration(&o.StopTimeout, defaultStopTimeout)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

func setDuration(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// Close ends all children and waits for them; requests from then on get 503. When
// ctx ends first, what is left is killed at once and the error is ctx's.
func (b *Bridge) Close(ctx context.Context) error {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	left := b.everySession()
	b.mu.Unlock()
	if first {
		close(b.stop)
	}
	for _, s := range left {
		s.end("the gateway stops")
	}
	var err error
	for _, s := range left {
		select {
		case <-s.gone:
		case <-ctx.Done():
			err = ctx.Err()
			s.kill()
			<-s.gone
		}
	}
	b.launcher.close()
	return err
}

// everySession is called with mu held.
func (b *Bridge) everySession() []*session {
	list := make([]*session, 0, len(b.all))
	for s := range b.all {
		list = append(list, s)
	}
	return list
}

// sweepOnTime ends what is due, until Close.
func (b *Bridge) sweepOnTime() {
	t := time.NewTicker(min(sweepInterval, max(b.opts.Idle/4, time.Millisecond)))
	defer t.Stop()
	for {
		select {
		case <-t.C:
			b.sweep()
		case <-b.stop:
			return
		}
	}
}

// sweep ends the children whose tokens have expired, and the idle ones.
func (b *Bridge) sweep() {
	now := b.opts.Now()
	b.mu.Lock()
	due := map[*session]string{}
	for s := range b.all {
		switch {
		case !s.expires.IsZero() && !now.Before(s.expires.Add(b.opts.Grace)):
			due[s] = "its last token has expired"
		case s.open == 0 && now.Sub(s.usedAt) >= b.opts.Idle:
			due[s] = "it was idle"
		}
	}
	b.mu.Unlock()
	for s, reason := range due {
		s.end(reason)
	}
}
