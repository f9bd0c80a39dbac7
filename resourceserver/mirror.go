package resourceserver

import (
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// Headers of the transport that repeat the body since 2026-07-28, so that
// intermediaries need not read it. We read the body; these must agree with it,
// for a server or a balancer behind us may go by them.
const (
	headerVersion  = "Mcp-Protocol-Version"
	headerMethod   = "Mcp-Method"
	headerName     = "Mcp-Name"
	versionMirrors = "2026-07-28"

	// metaVersion is the member of _meta that headerVersion repeats.
	metaVersion = "io.modelcontextprotocol/protocolVersion"
)

// mustMirrorName are the methods for which 2026-07-28 requires Mcp-Name.
var mustMirrorName = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true}

// checkMirrors compares the headers with the messages of a body. They are
// required since 2026-07-28, and of older revisions they must not disagree.
func checkMirrors(h http.Header, list []message, batch bool) error {
	version, method, name := h.Values(headerVersion), h.Values(headerMethod), h.Values(headerName)
	id := firstID(list)
	if len(version) > 1 || len(method) > 1 || len(name) > 1 {
		return headerMismatch("a header of the MCP transport is repeated", id)
	}
	for _, m := range list {
		if v := m.version; v != "" && (len(version) == 0 || strings.Trim(version[0], " \t") != v) {
			return headerMismatch("the header MCP-Protocol-Version disagrees with the body", m.id)
		}
	}
	required := len(version) == 1 && isVersion(version[0]) && version[0] >= versionMirrors
	if batch {
		if required || len(method) > 0 || len(name) > 0 {
			return headerMismatch("a batch has no one method that headers could name", id)
		}
		return nil
	}
	m := list[0]
	if m.method == "" { // an answer to the server
		if len(method) > 0 || len(name) > 0 {
			return headerMismatch("Mcp-Method or Mcp-Name is sent with a message that has no method", id)
		}
		return nil
	}
	switch {
	case len(method) == 0 && required:
		return headerMismatch("the header Mcp-Method is required", id)
	case len(method) == 1 && strings.Trim(method[0], " \t") != m.method:
		return headerMismatch("the header Mcp-Method disagrees with the body", id)
	case len(name) == 0 && required && mustMirrorName[m.method]:
		return headerMismatch("the header Mcp-Name is required", id)
	case len(name) == 1 && !m.mirrors(strings.Trim(name[0], " \t")):
		return headerMismatch("the header Mcp-Name disagrees with the body", id)
	}
	return nil
}

// mirrors reports whether the value of Mcp-Name is what the message acts on. Of
// methods that we do not know, e.g. tasks/get, any string of params may be it.
func (m message) mirrors(value string) bool {
	value, ok := decodeMirror(value)
	if !ok {
		return false
	}
	if namedBy[m.method] != "" {
		return value == m.name
	}
	for _, p := range m.params {
		if strictjson.IsString(p.Value, value) {
			return true
		}
	}
	return false
}

// decodeMirror undoes the encoding of values that a header cannot carry:
// "=?base64?" and "?=" around base64 of UTF-8.
func decodeMirror(value string) (string, bool) {
	rest, encoded := strings.CutPrefix(value, "=?base64?")
	if !encoded {
		return value, true
	}
	rest, closed := strings.CutSuffix(rest, "?=")
	b, err := base64.StdEncoding.Strict().DecodeString(rest)
	return string(b), closed && err == nil && utf8.Valid(b) && !strings.ContainsAny(rest, "\r\n")
}

// isVersion reports the form of MCP's versions, which are dates: they compare as
// strings.
func isVersion(s string) bool {
	if len(s) != len(versionMirrors) {
		return false
	}
	for i := range len(s) {
		if dash := i == 4 || i == 7; dash != (s[i] == '-') || !dash && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return true
}

// headerMismatch is the HeaderMismatch error of 2026-07-28.
func headerMismatch(description string, id []byte) *refusal {
	return &refusal{status: http.StatusBadRequest, code: "invalid_request", rpcCode: codeHeaderMismatch, rpcID: id,
		description: description}
}
