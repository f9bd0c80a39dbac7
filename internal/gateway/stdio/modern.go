package stdio

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// namedBy tells which member of params Mcp-Name repeats.
var namedBy = map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

// isVersion reports the form of MCP's revisions, which are dates: they compare as
// strings do.
func isVersion(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// isModern reports a revision without initialize.
func isModern(s string) bool { return isVersion(s) && s >= modernVersion }

// checkModern compares the headers of a request of 2026-07-28 with its body, as
// the server that reads bodies must; the child sees no headers. (Mcp-Param-* would
// need the tools' schemas.)
func checkModern(h http.Header, list []message, batch bool) error {
	m := list[0]
	r := m.request()
	switch {
	case batch || r == nil:
		return refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "the body must be one request or notification")
	case h.Get("Mcp-Method") != r.Method:
		return mismatch("the header Mcp-Method is not the body's method")
	case !r.IsCall():
		return nil
	case m.version() == "":
		return refuse(http.StatusBadRequest, jsonrpc.CodeInvalidParams, "_meta does not say "+mcp.MetaKeyProtocolVersion)
	case m.version() != h.Get(headerVersion):
		return mismatch("the header MCP-Protocol-Version is not the version in _meta")
	}
	if member := namedBy[r.Method]; member != "" {
		var name string
		if err := json.Unmarshal(m.params()[member], &name); err != nil || name == "" || decodeHeader(h.Get("Mcp-Name")) != name {
			return mismatch("the header Mcp-Name is not the body's " + member)
		}
	}
	return nil
}

func mismatch(message string) error {
	return refuse(http.StatusBadRequest, mcp.CodeHeaderMismatch, message)
}

// decodeHeader undoes the encoding of values that a header cannot carry.
func decodeHeader(value string) string {
	rest, encoded := strings.CutPrefix(value, "=?base64?")
	if rest, ok := strings.CutSuffix(rest, "?="); encoded && ok {
		if raw, err := base64.StdEncoding.DecodeString(rest); err == nil {
			return string(raw)
		}
	}
	return value
}
