package resourceserver

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// maxListed bounds the entries of one list.
const maxListed = 100_000

// listMethods are the requests whose answers are filtered.
var listMethods = map[string]bool{"tools/list": true, "prompts/list": true, "resources/list": true, "resources/templates/list": true}

// listed says how a list of a result names its entries, and which operation they
// are for.
var listed = map[string]struct{ method, member string }{
	"tools":             {"tools/call", "name"},
	"prompts":           {"prompts/get", "name"},
	"resources":         {"resources/read", "uri"},
	"resourceTemplates": {"resources/read", "uriTemplate"},
}

// listFilter leaves out of lists what the token may not call. The answer is
// buffered: JSON whole, of an event stream each event, whatever its type says when
// it begins as JSON does. What is not a list passes byte for byte; what cannot be
// read does not pass.
type listFilter struct {
	server *Server
	token  *Token
	limit  int64
	resume bool // of a GET: only an event stream can have a list

	w      *response
	status int
	events *eventReader // nil for JSON
	plain  bool         // neither JSON nor events: nothing to filter
	unsure bool         // of another type, until its first byte tells whether somebody may read JSON
	buf    []byte
}

// newListFilter returns nil when the answer to q cannot have a list. q is nil for
// a GET, whose stream may resume that of a request.
func (s *Server) newListFilter(t *Token, q *request) *listFilter {
	f := &listFilter{server: s, token: t, limit: s.opts.MaxBody, resume: q == nil}
	if q == nil || slices.ContainsFunc(q.messages, func(m message) bool { return listMethods[m.method] }) {
		return f
	}
	return nil
}

// begin learns what kind of answer comes; true when it keeps the header back.
func (f *listFilter) begin(w *response, status int) bool {
	f.w, f.status = w, status
	h := w.Header()
	t := mediaType(h)
	switch {
	case f.isOdd(h, t):
		f.fail(errors.New("nobody can tell whether the answer is an event stream"))
		return true
	case f.resume && t != eventStream:
		f.plain = true
		return false
	case isEncoded(h):
		// We left out Accept-Encoding; who encodes all the same cannot be filtered.
		f.fail(errors.New("the answer has a Content-Encoding"))
		return true
	case t == eventStream:
		h.Del("Content-Length")
		f.events = &eventReader{limit: f.limit, message: f.filterAnswer}
		return false
	}
	f.unsure = t != "" && !isJSON(t)
	return true
}

// isOdd reports a type that is an event stream to some clients alone: the
// TypeScript SDK looks whether the header, all of its values, contains the name.
func (f *listFilter) isOdd(h http.Header, t string) bool {
	all := h.Values("Content-Type")
	return len(all) > 1 && !f.resume || t != eventStream && strings.Contains(strings.ToLower(strings.Join(all, ",")), eventStream)
}

// isEncoded reports a body that must be decoded before it can be read.
func isEncoded(h http.Header) bool {
	return slices.ContainsFunc(h.Values("Content-Encoding"), func(v string) bool { return v != "" && v != "identity" })
}

// write takes what the handler writes.
func (f *listFilter) write(b []byte) error {
	switch {
	case f.plain:
		_, err := f.w.w.Write(b)
		return err
	case f.unsure && !f.decide(b):
		_, err := f.w.w.Write(b)
		return err
	case f.events != nil:
		out, err := f.events.read(b)
		if len(out) > 0 {
			if _, err := f.w.w.Write(out); err != nil {
				return err
			}
		}
		if err != nil {
			f.report(err)
		}
		return err
	case int64(len(f.buf)+len(b)) > f.limit:
		err := errors.New("the list is larger than MaxBody")
		f.fail(err)
		return err
	}
	f.buf = append(f.buf, b...)
	return nil
}

// decide looks at the first byte that is no space, and reports whether what it
// begins is kept back: an object or array is JSON to those who do not look at the
// type, and to those who know text/json, whatever stands before it.
func (f *listFilter) decide(b []byte) bool {
	for _, c := range b {
		switch {
		case c == '{' || c == '[':
			f.unsure = false
			return true
		case strings.IndexByte(" \t\r\n\v\f\x00\xef\xbb\xbf\xfe\xff", c) < 0: // spaces, byte order marks
			f.unsure, f.plain = false, true
			f.w.w.WriteHeader(f.status)
			_, _ = f.w.w.Write(f.buf)
			return false
		}
	}
	return true
}

// flush reports whether what was written is on its way.
func (f *listFilter) flush() bool { return f.plain || f.events != nil }

// end writes what was kept back, when the handler is done.
func (f *listFilter) end() {
	if f.w == nil || f.plain {
		return
	}
	if f.events != nil {
		if out, err := f.events.end(); err == nil {
			_, _ = f.w.w.Write(out)
		} else {
			f.report(err)
		}
		return
	}
	body := f.buf
	if len(bytes.TrimSpace(body)) > 0 && !f.unsure {
		var err error
		if body, err = f.filterAnswer(f.buf); err != nil {
			f.fail(err)
			return
		}
	}
	if f.w.Header().Get("Content-Length") != "" || len(body) > 0 {
		f.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	f.w.w.WriteHeader(f.status)
	_, _ = f.w.w.Write(body)
}

// fail answers instead of the handler: a list that cannot be read is not shown.
func (f *listFilter) fail(err error) {
	f.report(err)
	f.w.dead = err
	h := f.w.Header()
	h.Del("Content-Encoding")
	h.Del("Content-Length")
	writeRefusal(f.w.w, &refusal{status: http.StatusBadGateway, rpcCode: codeInternalError,
		description: "the list could not be limited to what the token may call"})
}

func (f *listFilter) report(err error) {
	f.server.log.WarnContext(f.w.r.Context(), "list withheld", slog.Any("cause", err))
}

// filterAnswer filters one JSON-RPC message or a batch. What has nothing to
// leave out is returned as it came.
func (f *listFilter) filterAnswer(b []byte) ([]byte, error) {
	switch trimmed := bytes.TrimLeft(b, " \t\r\n"); {
	case len(trimmed) > 0 && trimmed[0] == '{':
		return f.filterMessage(b)
	case len(trimmed) > 0 && trimmed[0] == '[':
		list, err := readArray(b, maxListed)
		if err != nil {
			return nil, err
		}
		return replaceEach(b, list, func(_ string, v []byte) ([]byte, error) { return f.filterMessage(v) })
	case f.events != nil:
		return b, nil // an event need not be JSON, and this is no message
	}
	return nil, errors.New("the answer is not JSON")
}

func (f *listFilter) filterMessage(b []byte) ([]byte, error) {
	o, err := readAnswer(b)
	if err != nil {
		return nil, err
	}
	if !startsWith(o.Get("result"), '{') {
		return b, nil
	}
	return replaceEach(b, o, func(name string, v []byte) ([]byte, error) {
		if name != "result" {
			return v, nil
		}
		return f.filterResult(v)
	})
}

func (f *listFilter) filterResult(b []byte) ([]byte, error) {
	o, err := readAnswer(b)
	if err != nil {
		return nil, err
	}
	isList := false
	for name := range listed {
		isList = isList || startsWith(o.Get(name), '[')
	}
	if !isList {
		return b, nil
	}
	return replaceEach(b, o, func(name string, v []byte) ([]byte, error) {
		if name == "cacheScope" {
			return []byte(`"private"`), nil // it is what this token may see
		}
		if _, ok := listed[name]; !ok || !startsWith(v, '[') {
			return v, nil
		}
		return f.filterList(name, v)
	})
}

// filterList returns the array b without the entries that the token may not call.
func (f *listFilter) filterList(name string, b []byte) ([]byte, error) {
	list, err := readArray(b, maxListed)
	if err != nil {
		return nil, err
	}
	kept := make([][]byte, 0, len(list))
	for _, e := range list {
		if f.mayCall(name, e.Value) {
			kept = append(kept, e.Value)
		}
	}
	if len(kept) == len(list) {
		return b, nil
	}
	return append(append([]byte{'['}, bytes.Join(kept, []byte{','})...), ']'), nil
}

func (f *listFilter) mayCall(name string, entry []byte) bool {
	var members [16]strictjson.Member // on the stack, for there are many entries
	o, err := strictjson.ReadObject(entry, members[:0], bodyBounds)
	if err != nil {
		return false
	}
	id, ok := o.Str(listed[name].member)
	if !ok {
		return false
	}
	needed, ok := f.server.table.scopesFor(Operation{Method: listed[name].method, Name: id})
	return ok && f.server.Allows(f.token, needed...)
}

// readAnswer reads an object of the server. A client in Go may take another case
// of a name for it, so that is refused here too.
func readAnswer(b []byte) (strictjson.Object, error) {
	o, err := readObject(b)
	if err != nil {
		return nil, err
	}
	return o, checkCase(o, answerNames)
}

var answerNames = foldedNames("id", "result", "tools", "prompts", "resources", "resourceTemplates", "cacheScope")

func startsWith(v []byte, c byte) bool { return len(v) > 0 && v[0] == c }

// replaceEach returns the object or array b with the value of each member
// replaced, and all bytes between them as they were.
func replaceEach(b []byte, list []strictjson.Member, by func(name string, v []byte) ([]byte, error)) ([]byte, error) {
	var out bytes.Buffer
	last := 0
	for _, m := range list {
		v, err := by(string(m.Name), m.Value)
		if err != nil {
			return nil, err
		}
		_, _ = out.Write(b[last:m.At])
		_, _ = out.Write(v)
		last = m.End()
	}
	_, _ = out.Write(b[last:])
	return out.Bytes(), nil
}
