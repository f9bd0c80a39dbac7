package resourceserver

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"strings"
)

// request is what the body of an admitted request says, nil when it was not read.
type request struct {
	body     []byte
	messages []message
}

// readRequest reads the JSON-RPC body of r, all of it, and compares the headers
// that repeat it. What was read is what is forwarded, byte for byte.
func (s *Server) readRequest(w http.ResponseWriter, r *http.Request) (*request, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodDelete || r.Method == http.MethodOptions {
		if r.ContentLength != 0 {
			return nil, badBody(errors.New("a body comes with POST"), nil)
		}
		return nil, nil
	}
	if err := checkEncoding(r); err != nil {
		return nil, err
	}
	body, err := s.readBody(w, r)
	if err != nil {
		return nil, err
	}
	list, batch, err := readMessages(body)
	if err != nil {
		return nil, badBody(err, firstID(list))
	}
	if err := checkMirrors(r.Header, list, batch); err != nil {
		return nil, err
	}
	return &request{body: body, messages: list}, nil
}

// checkEncoding refuses a body that somebody behind us would decode: into
// something that was not read here.
func checkEncoding(r *http.Request) error {
	if len(r.Header.Values("Content-Encoding")) > 0 {
		return badBody(errors.New("the body must not have a Content-Encoding"), nil)
	}
	types := r.Header.Values("Content-Type")
	if len(types) == 0 || len(types) == 1 && types[0] == "application/json" {
		return nil
	}
	_, params, err := mime.ParseMediaType(types[0])
	charset, named := params["charset"]
	if len(types) > 1 || err != nil || named && !strings.EqualFold(charset, "utf-8") {
		return badBody(errors.New("the Content-Type is not one media type in UTF-8"), nil)
	}
	return nil
}

func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	// Who promises more gets no more beforehand than others send.
	expected := max(min(r.ContentLength, s.opts.MaxBody, 64<<10), 0)
	buf := bytes.NewBuffer(make([]byte, 0, expected+bytes.MinRead))
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, s.opts.MaxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		e := badBody(errors.New("the body is too large"), nil)
		e.status = http.StatusRequestEntityTooLarge
		return nil, e
	}
	if err != nil {
		return nil, badBody(errors.New("the body could not be read"), nil)
	}
	return buf.Bytes(), nil
}

// restore gives out the bytes that were read, as one body of known length.
func (q *request) restore(out *http.Request) {
	b := &readBody{}
	b.Reset(q.body)
	out.Body = b
	out.ContentLength = int64(len(q.body))
	out.TransferEncoding = nil
}

// readBody is a body that was read, to be read again.
type readBody struct{ bytes.Reader }

// Close implements io.Closer.
func (*readBody) Close() error { return nil }

func firstID(list []message) []byte {
	if len(list) == 0 {
		return nil
	}
	return list[0].id
}

// JSON-RPC error codes: of JSON-RPC 2.0 §5.1, and of MCP 2026-07-28.
const (
	codeInvalidRequest = -32600
	codeInternalError  = -32603
	codeHeaderMismatch = -32020
)

// badBody is 400 with a JSON-RPC error, which is what MCP clients show.
func badBody(err error, id []byte) *refusal {
	return &refusal{status: http.StatusBadRequest, code: "invalid_request", rpcCode: codeInvalidRequest, rpcID: id,
		description: err.Error()}
}
