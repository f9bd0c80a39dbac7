package resourceserver

import (
	"bytes"
	"errors"
)

var errEventTooLarge = errors.New("an event is larger than MaxBody")

// eventReader cuts a stream of server-sent events into events and gives the data
// of each to message. Events whose data stays the same pass byte for byte.
type eventReader struct {
	limit   int64
	message func(data []byte) ([]byte, error)
	buf     []byte
	begun   bool // the first line, which may have a byte order mark, has passed
	line    int  // where the first line that is not whole begins
	fields  bool // the pending event has lines that are not comments
}

// read takes further bytes of the stream and returns what may be sent on.
func (e *eventReader) read(b []byte) (out []byte, err error) {
	e.buf = append(e.buf, b...)
	for {
		n := lineEnd(e.buf[e.line:])
		if n == 0 {
			break
		}
		line := e.buf[e.line : e.line+n]
		e.line += n
		switch {
		case len(trimEOL(line)) == 0: // a blank line ends an event
			event, err := e.filter(e.buf[:e.line])
			if err != nil {
				return out, err
			}
			out = append(out, event...)
			e.drop()
		case line[0] != ':':
			e.fields = true
		}
	}
	if !e.fields && e.line > 0 { // comments keep a connection alive: they must not wait
		out = append(out, e.buf[:e.line]...)
		e.begun = true
		e.drop()
	}
	if int64(len(e.buf)) > e.limit {
		return out, errEventTooLarge
	}
	return out, nil
}

// end returns the rest of a stream that was not ended by a blank line.
func (e *eventReader) end() ([]byte, error) { return e.filter(e.buf) }

func (e *eventReader) drop() {
	e.buf = append(e.buf[:0], e.buf[e.line:]...)
	e.line, e.fields = 0, false
}

// filter returns the event with its data filtered.
func (e *eventReader) filter(event []byte) ([]byte, error) {
	if int64(len(event)) > e.limit {
		return nil, errEventTooLarge
	}
	mark := e.takeMark(event)
	data, ok := eventData(event[mark:])
	if !ok {
		return event, nil
	}
	filtered, err := e.message(data)
	if err != nil || bytes.Equal(filtered, data) {
		return event, err
	}
	return append(event[:mark:mark], withData(event[mark:], filtered)...), nil
}

// takeMark returns the length of the byte order mark that a stream, and no later
// event of it, may begin with.
func (e *eventReader) takeMark(event []byte) int {
	const mark = "\ufeff"
	if e.begun || !bytes.HasPrefix(event, []byte(mark)) {
		e.begun = true
		return 0
	}
	e.begun = true
	return len(mark)
}

// eventData joins the data lines of an event; false when it has none.
func eventData(event []byte) (data []byte, ok bool) {
	for len(event) > 0 {
		line, rest := cutLine(event)
		if value, isData := dataOf(line); isData {
			if ok {
				data = append(data, '\n')
			}
			data, ok = append(data, value...), true
		}
		event = rest
	}
	return data, ok
}

// withData returns the event with data in the place of its first data line.
func withData(event, data []byte) []byte {
	var out []byte
	written := false
	for len(event) > 0 {
		line, rest := cutLine(event)
		event = rest
		eol := []byte("\n") // for CR too: before the LF of the next line it would end nothing
		if bytes.HasSuffix(line, []byte("\r\n")) {
			eol = []byte("\r\n")
		}
		if _, isData := dataOf(line); !isData {
			out = append(append(out, trimEOL(line)...), eol...)
			continue
		}
		if written {
			continue
		}
		written = true
		for part := range bytes.SplitSeq(data, []byte("\n")) {
			out = append(append(append(out, "data: "...), bytes.TrimRight(part, "\r")...), eol...)
		}
	}
	return out
}

// dataOf returns the value of a data line.
func dataOf(line []byte) ([]byte, bool) {
	name, value, _ := bytes.Cut(trimEOL(line), []byte(":"))
	return bytes.TrimPrefix(value, []byte(" ")), string(name) == "data"
}

func cutLine(b []byte) (line, rest []byte) {
	n := lineEnd(b)
	if n == 0 {
		n = len(b)
	}
	return b[:n], b[n:]
}

// lineEnd returns the length of the first whole line of b with its end, which is
// CRLF, LF or CR; 0 when there is none, or when a CR at the end of b may be half
// of one.
func lineEnd(b []byte) int {
	i := bytes.IndexAny(b, "\r\n")
	if i < 0 {
		return 0
	}
	switch {
	case b[i] == '\n':
		return i + 1
	case i+1 == len(b):
		return 0
	case b[i+1] == '\n':
		return i + 2
	}
	return i + 1
}

func trimEOL(line []byte) []byte { return bytes.TrimRight(line, "\r\n") }
