package doctor

import (
	"encoding/json"
	"net/url"
	"strings"
)

// facts are what the examination has learnt from documents.
type facts struct {
	resourceDoc  document
	resourceFrom *exchange
	// issuer is as the MCP server spells it, or as the operator did.
	issuer     string
	issuerDoc  document
	issuerFrom *exchange
}

func (x *examination) issuerURL() *url.URL {
	u, err := url.Parse(x.issuer)
	if err != nil {
		return &url.URL{} // issuer-known has refused it
	}
	return u
}

// document is a JSON object of a server, nil when it is none.
type document map[string]json.RawMessage

func parseDocument(body []byte) document {
	var d document
	if json.Unmarshal(body, &d) != nil {
		return nil
	}
	return d
}

func (d document) has(name string) bool {
	v, found := d[name]
	return found && string(v) != "null"
}

// text returns a string member, "" when it is none.
func (d document) text(name string) string {
	var s string
	if json.Unmarshal(d[name], &s) != nil {
		return ""
	}
	return s
}

// list returns a member that is an array of strings, nil when it is none.
func (d document) list(name string) []string {
	var l []string
	if json.Unmarshal(d[name], &l) != nil {
		return nil
	}
	return l
}

// is reports a member that is true.
func (d document) is(name string) bool {
	var b bool
	return json.Unmarshal(d[name], &b) == nil && b
}

// member shows a member in a report.
func (d document) member(name string) string {
	if v, found := d[name]; found {
		return name + " " + string(v)
	}
	return "no " + name
}

// trimSlash takes the slash off that people and libraries add to URLs.
func trimSlash(s string) string { return strings.TrimSuffix(s, "/") }
