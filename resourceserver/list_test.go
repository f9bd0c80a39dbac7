package resourceserver_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

const (
	allTools = `{"jsonrpc":"2.0","id":1,"result":{ "tools" : [ {"name":"list_notes", "x":1.0}, {"name":"add_note"},{"name":"other"} ,{"title":"nameless"}],"nextCursor":"c" }}`
	myTools  = `{"jsonrpc":"2.0","id":1,"result":{ "tools" : [{"name":"list_notes", "x":1.0}],"nextCursor":"c" }}`
	listBody = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
)

func listFixture(t *testing.T, change ...func(*resourceserver.Options)) *fixture {
	t.Helper()
	return newFixture(t, append([]func(*resourceserver.Options){func(o *resourceserver.Options) {
		o.FilterLists = true
		o.Operations = map[resourceserver.Operation][]string{
			{Method: "tools/call", Name: "list_notes"}:            {"notes:read"},
			{Method: "tools/call", Name: "add_note"}:              {"notes:write"},
			{Method: "prompts/get", Name: "p"}:                    {"notes:read"},
			{Method: "resources/read", Prefix: "notes://public/"}: {},
			{Method: "resources/read", Prefix: "notes://drafts/"}: {"notes:write"},
		}
	}}, change...)...)
}

// answerWith serves body with a content type to one request and returns the answer.
func (f *fixture) answerWith(t *testing.T, method, ask, contentType, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	f.handler = f.server.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		if got := r.Header.Get("Accept-Encoding"); got != "" && strings.Contains(ask, "/list") {
			t.Errorf("the handler may encode: Accept-Encoding %q", got)
		}
		_, _ = io.WriteString(w, body)
	}))
	r := httptest.NewRequest(method, testResource, strings.NewReader(ask))
	if ask == "" {
		r = httptest.NewRequest(method, testResource, nil)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	return f.call(r, f.token(t, "notes:read"))
}

func TestFilterLists(t *testing.T) {
	t.Parallel()
	f := listFixture(t)
	ask := func(method string) string { return strings.Replace(listBody, "tools/list", method, 1) }
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_notes"}}`
	event := func(data string) string { return "id: 7\nevent: message\ndata: " + data + "\nretry: 5\n\n" }
	for _, tt := range []struct{ name, method, ask, contentType, body, want string }{
		{"JSON", "POST", listBody, "application/json", allTools, myTools},
		{"JSON without a type", "POST", listBody, "", allTools, myTools},
		{"nothing left out, byte for byte", "POST", listBody, "application/json", myTools + "\n", myTools + "\n"},
		{"prompts", "POST", ask("prompts/list"), "application/json",
			`{"id":1,"result":{"prompts":[{"name":"p"},{"name":"q"}]}}`, `{"id":1,"result":{"prompts":[{"name":"p"}]}}`},
		{"resources", "POST", ask("resources/list"), "application/json",
			`{"id":1,"result":{"resources":[{"uri":"notes://public/1"},{"uri":"notes://drafts/1"},{"uri":"notes://public/../drafts/1"},{"uri":"x:y"}]}}`,
			`{"id":1,"result":{"resources":[{"uri":"notes://public/1"}]}}`},
		{"templates", "POST", ask("resources/templates/list"), "application/json",
			`{"id":1,"result":{"resourceTemplates":[{"uriTemplate":"notes://drafts/{id}"},{"uriTemplate":"notes://public/{id}"}]}}`,
			`{"id":1,"result":{"resourceTemplates":[{"uriTemplate":"notes://public/{id}"}]}}`},
		{"what one token may see is private", "POST", listBody, "application/json",
			`{"id":1,"result":{"tools":[],"ttlMs":1000,"cacheScope":"public"}}`, `{"id":1,"result":{"tools":[],"ttlMs":1000,"cacheScope":"private"}}`},
		{"answer that also has a method", "POST", listBody, "application/json",
			`{"id":1,"method":"x","result":{"tools":[{"name":"add_note"}]}}`, `{"id":1,"method":"x","result":{"tools":[]}}`},
		{"stream with a byte order mark", "POST", listBody, "text/event-stream", "\ufeffdata: " + allTools + "\n\n", "\ufeffdata: " + myTools + "\n\n"},
		{"stream with CR alone", "POST", listBody, "text/event-stream", "id:1\rdata: " + allTools + "\r\rdata: x\r\r", "id:1\ndata: " + myTools + "\n\ndata: x\r\r"},
		{"mark within a stream is a field of its own", "POST", listBody, "text/event-stream",
			"data: x\n\n\ufeffdata: x\ndata: " + allTools + "\n\n", "data: x\n\n\ufeffdata: x\ndata: " + myTools + "\n\n"},
		{"error", "POST", listBody, "application/json", `{"id":1,"error":{"code":-32603,"message":"m"}}`, `{"id":1,"error":{"code":-32603,"message":"m"}}`},
		{"batch", "POST", "[" + listBody + "," + call + "]", "application/json",
			`[{"id":2,"result":{"content":[{"name":"add_note"}]}}, ` + allTools + `]`,
			`[{"id":2,"result":{"content":[{"name":"add_note"}]}}, ` + myTools + `]`},
		{"event stream", "POST", listBody, "text/event-stream; charset=utf-8",
			": hello\n\n" + event(`{"method":"notifications/progress","params":{"tools":[1]}}`) + event(allTools),
			": hello\n\n" + event(`{"method":"notifications/progress","params":{"tools":[1]}}`) + event(myTools)},
		{"event stream with CRLF", "POST", listBody, "text/event-stream", "data:" + allTools + "\r\n\r\n", "data: " + myTools + "\r\n\r\n"},
		{"event without an end", "POST", listBody, "text/event-stream", "data: " + allTools, "data: " + myTools + "\n"},
		{"event in several lines", "POST", listBody, "text/event-stream",
			"data: {\"id\":1,\ndata: \"result\":{\"tools\":[{\"name\":\"other\"}]}}\n\n", "data: {\"id\":1,\ndata: \"result\":{\"tools\":[]}}\n\n"},
		{"first event of a stream", "POST", listBody, "text/event-stream", "id: 1\nretry: 5\ndata: \n\n", "id: 1\nretry: 5\ndata: \n\n"},
		{"resumed stream", "GET", "", "text/event-stream", event(allTools), event(myTools)},
		{"event that is not JSON", "GET", "", "text/event-stream", "event: endpoint\ndata: /message?id=1\n\n", "event: endpoint\ndata: /message?id=1\n\n"},
		{"page", "GET", "", "application/json", `[{"tools":1}`, `[{"tools":1}`},
		{"answer to a call, byte for byte", "POST", call, "application/json", `{"id":2,"result":{"tools":[{"name":"other"}]}`, `{"id":2,"result":{"tools":[{"name":"other"}]}`},
		{"text", "POST", listBody, "text/plain", "no such session", "no such session"},
		{"nothing", "POST", listBody, "application/json", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := f.answerWith(t, tt.method, tt.ask, tt.contentType, tt.body, "Content-Length", strconv.Itoa(len(tt.body)))
			if w.Code != http.StatusOK || w.Body.String() != tt.want {
				t.Fatalf("%d %q\nwant %q", w.Code, w.Body, tt.want)
			}
			if n := w.Header().Get("Content-Length"); n != "" && n != strconv.Itoa(len(tt.want)) {
				t.Errorf("Content-Length = %s of %d bytes", n, len(tt.want))
			}
		})
	}
}

// What cannot be read is not shown.
func TestFilterListsFailsClosed(t *testing.T) {
	t.Parallel()
	f := listFixture(t, func(o *resourceserver.Options) { o.MaxBody = 4 << 10 })
	large := `{"id":1,"result":{"tools":[{"name":"list_notes","x":"` + strings.Repeat("a", 8<<10) + `"}]}}`
	for _, tt := range []struct{ name, body, encoding string }{
		{"tools twice", `{"id":1,"result":{"tools":[],"tools":[{"name":"add_note"}]}}`, ""},
		{"Tools", `{"id":1,"result":{"tools":[],"Tools":[{"name":"add_note"}]}}`, ""},
		{"reſult", `{"id":1,"reſult":{"tools":[{"name":"add_note"}]}}`, ""},
		{"NaN", `{"id":1,"result":{"tools":[{"name":"add_note","x":NaN}]}}`, ""},
		{"cut off", `{"id":1,"result":{"tools":[{"name":"add_note"}]`, ""},
		{"too large", large, ""},
		{"encoded", `{"id":1,"result":{"tools":[{"name":"add_note"}]}}`, "gzip"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			header := []string{"Content-Length", strconv.Itoa(len(tt.body))}
			if tt.encoding != "" {
				header = append(header, "Content-Encoding", tt.encoding)
			}
			w := f.answerWith(t, "POST", listBody, "application/json", tt.body, header...)
			if code, _ := rpcError(t, w); w.Code != http.StatusBadGateway || code != -32603 || strings.Contains(w.Body.String(), "add_note") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			w = f.answerWith(t, "POST", listBody, "text/event-stream", "data: {}\n\ndata: "+tt.body+"\n\n", header[2:]...)
			if strings.Contains(w.Body.String(), "name") {
				t.Errorf("event stream: %d %.200s", w.Code, w.Body)
			}
		})
	}
}

// An upstream's Content-Type that only careful parsers refuse is what clients read
// as JSON or as events all the same.
func TestFilterListsOddTypes(t *testing.T) {
	t.Parallel()
	f := listFixture(t)
	for _, tt := range []struct{ contentType, body, want string }{
		{"application/json; charset=utf-8; charset=utf-8", allTools, myTools},
		{"application/json; charset", allTools, myTools},
		{"application/json;;", allTools, myTools},
		{"Application/JSON ; q=\"", allTools, myTools},
		{" application/json", allTools, myTools},
		{"application/vnd.example+json; x=1; x=2", allTools, myTools},
		{"text/event-stream; charset=utf-8; charset=utf-8", "data: " + allTools + "\n\n", "data: " + myTools + "\n\n"},
		{"Text/Event-Stream;a", "data: " + allTools + "\n\n", "data: " + myTools + "\n\n"},
	} {
		t.Run("SC-09 "+tt.contentType, func(t *testing.T) {
			if w := f.answerWith(t, "POST", listBody, tt.contentType, tt.body); w.Body.String() != tt.want {
				t.Errorf("%d %q\nwant %q", w.Code, w.Body, tt.want)
			}
		})
	}
	for _, contentType := range []string{"text/json", "application/x-json", "application/json, application/json", "text/plain",
		"application/yaml", "text/plain; x=application/json", "?"} {
		t.Run("SC-09 JSON as "+contentType, func(t *testing.T) {
			if w := f.answerWith(t, "POST", listBody, contentType, allTools); w.Code != http.StatusOK || w.Body.String() != myTools {
				t.Errorf("%d %q\nwant %q", w.Code, w.Body, myTools)
			}
			for _, before := range []string{"\ufeff", "\xff\xfe", "\x00", "\v"} {
				if w := f.answerWith(t, "POST", listBody, contentType, before+allTools); w.Code != http.StatusBadGateway || strings.Contains(w.Body.String(), "add_note") {
					t.Errorf("%q before it: %d %q", before, w.Code, w.Body)
				}
			}
			for _, text := range []string{" no such session", " \n", "", "\ufeffx", "<p>{"} {
				if w := f.answerWith(t, "POST", listBody, contentType, text); w.Code != http.StatusOK || w.Body.String() != text {
					t.Errorf("%q became %d %q", text, w.Code, w.Body)
				}
			}
		})
	}
	for _, contentType := range []string{"text/event-stream, x", "text/plain; x=text/event-stream", "application/json, Text/Event-Stream"} {
		for _, method := range []string{"POST", "GET"} {
			t.Run("SC-09 events as "+contentType+" to "+method, func(t *testing.T) {
				ask := map[string]string{"POST": listBody}[method]
				if w := f.answerWith(t, method, ask, contentType, "data: "+allTools+"\n\n"); w.Code != http.StatusBadGateway || strings.Contains(w.Body.String(), "add_note") {
					t.Errorf("%d %q", w.Code, w.Body)
				}
			})
		}
	}
	t.Run("SC-09 two types", func(t *testing.T) {
		f.handler = f.server.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{"text/event-stream", "application/json"}
			_, _ = io.WriteString(w, allTools)
		}))
		w := f.call(httptest.NewRequest("POST", testResource, strings.NewReader(listBody)), f.token(t, "notes:read"))
		if w.Code != http.StatusBadGateway || strings.Contains(w.Body.String(), "add_note") {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
	t.Run("SC-09 JSON in two writes behind a space", func(t *testing.T) {
		f.handler = f.server.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/json")
			_, _ = io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, allTools)
		}))
		w := f.call(httptest.NewRequest("POST", testResource, strings.NewReader(listBody)), f.token(t, "notes:read"))
		if w.Code != http.StatusOK || w.Body.String() != " "+myTools {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
	t.Run("SC-09 two encodings", func(t *testing.T) {
		f.handler = f.server.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header()["Content-Encoding"] = []string{"identity", "gzip"}
			_, _ = io.WriteString(w, "\x1f\x8bdata: x\n\n")
		}))
		w := f.call(httptest.NewRequest("POST", testResource, strings.NewReader(listBody)), f.token(t, "notes:read"))
		if w.Code != http.StatusBadGateway || strings.Contains(w.Body.String(), "data: x") {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
}

// An event of a filtered stream arrives when it is flushed, not at the end.
func TestFilterListsKeepsFlushes(t *testing.T) {
	t.Parallel()
	f := listFixture(t)
	for _, h2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP/1.1", true: "HTTP/2"}[h2], func(t *testing.T) {
			t.Parallel()
			read := make(chan struct{})
			srv := httptest.NewUnstartedServer(f.server.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for _, part := range []string{": here\n", "data: " + allTools[:20], allTools[20:] + "\n\n"} {
					_, _ = io.WriteString(w, part)
					w.(http.Flusher).Flush()
				}
				select {
				case <-read:
				case <-r.Context().Done():
				}
			})))
			srv.EnableHTTP2 = h2
			srv.StartTLS()
			t.Cleanup(srv.Close)
			req, err := http.NewRequest(http.MethodPost, srv.URL, strings.NewReader(listBody))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+f.token(t, "notes:read"))
			resp, err := srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			body := bufio.NewReader(resp.Body)
			for _, want := range []string{": here\n", "data: " + myTools + "\n"} {
				if got, err := body.ReadString('\n'); got != want {
					t.Fatalf("%q, %v; want %q", got, err, want)
				}
			}
			close(read)
			if rest, err := io.ReadAll(body); err != nil || string(rest) != "\n" {
				t.Errorf("rest %q, %v", rest, err)
			}
		})
	}
}

// A broad scope shows what it covers; without FilterLists everything is shown.
func TestFilterListsByScope(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*resourceserver.Options)
		want   []string
	}{
		{"hierarchy", func(o *resourceserver.Options) { o.Implies = map[string][]string{"notes:read": {"notes:write"}} }, []string{"list_notes", "add_note"}},
		{"defaults", func(o *resourceserver.Options) { o.DefaultScopes = []string{} }, []string{"list_notes", "other"}},
		{"off", func(o *resourceserver.Options) { o.FilterLists = false }, []string{"list_notes", "add_note", "other", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := listFixture(t, tt.change)
			f.handler = f.server.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, allTools)
			}))
			w := f.call(httptest.NewRequest("POST", testResource, strings.NewReader(listBody)), f.token(t, "notes:read"))
			var got struct {
				Result struct{ Tools []struct{ Name string } }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range got.Result.Tools {
				names = append(names, tool.Name)
			}
			if strings.Join(names, " ") != strings.Join(tt.want, " ") {
				t.Errorf("tools %q, want %q", names, tt.want)
			}
		})
	}
}
