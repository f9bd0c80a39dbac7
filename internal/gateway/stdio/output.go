package stdio

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxLogLine = 4 << 10 // bytes of a line that is logged
	logBurst   = 100     // lines at once,
	logRate    = 20      // and a second after that
)

// readLines calls line for each line of r, without its end, until r ends. Of a
// line longer than limit it hands out the beginning, with cut set. The slice is
// the callee's.
func readLines(r io.Reader, limit int, line func(line []byte, cut bool)) {
	in := bufio.NewReaderSize(r, 32<<10)
	var buf []byte
	cut := false
	for {
		part, err := in.ReadSlice('\n')
		whole := err == nil
		if whole {
			part = part[:len(part)-1]
		}
		room := max(limit-len(buf), 0)
		cut = cut || len(part) > room
		buf = append(buf, part[:min(len(part), room)]...)
		switch {
		case whole:
			line(buf, cut)
			buf, cut = nil, false
		case !errors.Is(err, bufio.ErrBufferFull):
			if len(buf) > 0 {
				line(buf, cut)
			}
			return
		}
	}
}

// lineLog logs lines that a child wrote, escaped and not too many of them.
type lineLog struct {
	log *slog.Logger
	now func() time.Time

	mu      sync.Mutex
	tokens  float64
	filled  time.Time
	dropped int
}

func newLineLog(log *slog.Logger, now func() time.Time) *lineLog {
	return &lineLog{log: log, now: now, tokens: logBurst, filled: now()}
}

// add logs message with the line, unless there were too many lately.
func (l *lineLog) add(level slog.Level, message string, line []byte, cut bool) {
	if !l.admit() {
		return
	}
	l.log.Log(context.Background(), level, message, slog.String("line", escape(line)), slog.Bool("cut", cut))
}

func (l *lineLog) admit() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.tokens = min(logBurst, l.tokens+max(now.Sub(l.filled).Seconds(), 0)*logRate)
	l.filled = now
	if l.tokens < 1 {
		l.dropped++
		return false
	}
	l.tokens--
	l.tell()
	return true
}

// flush tells how many lines were left out since the last one.
func (l *lineLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell()
}

func (l *lineLog) tell() {
	if l.dropped > 0 {
		l.log.Warn("the MCP server writes too much; lines were left out", slog.Int("dropped", l.dropped))
		l.dropped = 0
	}
}

// escape makes a line harmless for terminals and for who reads logs line by line:
// everything that does not print, bytes that are not UTF-8, and the backslash
// itself are written as in a Go string.
func escape(line []byte) string {
	var b strings.Builder
	for len(line) > 0 {
		r, n := utf8.DecodeRune(line)
		switch {
		case r == utf8.RuneError && n == 1:
			const hex = "0123456789abcdef"
			b.WriteString(`\x`)
			b.WriteByte(hex[line[0]>>4])
			b.WriteByte(hex[line[0]&0xf])
		case r == '\\' || !unicode.IsPrint(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
		line = line[n:]
	}
	return b.String()
}
