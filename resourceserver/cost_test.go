package resourceserver_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// costs are requests whose token was seen, and the most allocations that they may
// add to those of the handler behind. A promise is what the first two keep; the
// others are as they are, so that one notices when they grow.
var costs = []struct {
	name    string
	method  string
	body    string
	answer  string // of the handler
	options func(*resourceserver.Options)
	most    float64
}{
	{name: "POST", method: http.MethodPost, most: 2},
	{name: "GET", method: http.MethodGet, most: 2},
	{name: "tools/call of 1 kB", method: http.MethodPost, body: toolsCall(1000), options: tools(50), most: 12},
	{name: "tools/list of 50 tools, filtered", method: http.MethodPost, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		answer: toolsList(50), options: func(o *resourceserver.Options) { tools(50)(o); o.FilterLists = true }, most: 120},
}

// tools is a table of n tools, of which the token may call each second.
func tools(n int) func(*resourceserver.Options) {
	return func(o *resourceserver.Options) {
		o.Operations = map[resourceserver.Operation][]string{}
		for i := range n {
			o.Operations[resourceserver.Operation{Method: "tools/call", Name: fmt.Sprintf("tool_%d", i)}] =
				[]string{[]string{"notes:read", "notes:write"}[i%2]}
		}
	}
}

func toolsCall(size int) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"tool_0","arguments":{"title":"a note","text":"` +
		strings.Repeat("note ", (size-130)/5) + `"},"_meta":{"progressToken":7}}}`
}

func toolsList(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"name":"tool_%d","description":"does what a tool does, %d times",`+
			`"inputSchema":{"type":"object","properties":{"title":{"type":"string"},"text":{"type":"string"}},"required":["title"]}}`, i, i))
	}
	return `{"jsonrpc":"2.0","id":1,"result":{"tools":[` + strings.Join(list, ",") + `]}}`
}

// body is a request's body that can be read again.
type body struct{ *bytes.Reader }

func (body) Close() error { return nil }

// costly returns what serves the request once, with the middleware and without.
func costly(tb testing.TB, i int) (protected, bare func()) {
	tb.Helper()
	c := costs[i]
	change := []func(*resourceserver.Options){func(o *resourceserver.Options) { o.Now = time.Now }}
	if c.options != nil {
		change = append(change, c.options)
	}
	f := newFixture(tb, change...)
	f.now = time.Now()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.answer != "" {
			w.Header()["Content-Type"] = []string{"application/json"}
			_, _ = io.WriteString(w, c.answer)
		}
	})
	r := httptest.NewRequest(c.method, testResource, nil)
	r.Header.Set("Authorization", "Bearer "+f.token(tb, "notes:read"))
	r.Header.Set("Content-Type", "application/json")
	authorization, out, content := r.Header["Authorization"], &sink{header: http.Header{}}, []byte(c.body)
	reader := body{bytes.NewReader(nil)}
	serve := func(h http.Handler) func() {
		return func() {
			clear(out.header)
			r.Header["Authorization"] = authorization // Protect takes it off
			r.Body, r.ContentLength = http.NoBody, 0
			if c.body != "" {
				reader.Reset(content)
				r.Body, r.ContentLength = reader, int64(len(content))
			}
			h.ServeHTTP(out, r)
			if out.header.Get("WWW-Authenticate") != "" || c.answer != "" && out.header.Get("Content-Type") != "application/json" {
				tb.Fatal("the request was refused")
			}
		}
	}
	return serve(f.server.Protect(h)), serve(h)
}

// Time depends on the machine, allocations do not. It does not run beside other
// tests, which allocate too.
func TestAllocations(t *testing.T) {
	for i, c := range costs {
		t.Run(c.name, func(t *testing.T) {
			protected, bare := costly(t, i)
			n := testing.AllocsPerRun(200, protected) - testing.AllocsPerRun(200, bare)
			if n > c.most || n < 1 {
				t.Errorf("%v allocations on top of the handler, want at most %v", n, c.most)
			}
			t.Logf("%v allocations on top of the handler", n)
		})
	}
}

// BenchmarkRequest is each of costs with the middleware.
func BenchmarkRequest(b *testing.B) {
	for i, c := range costs {
		b.Run(c.name, func(b *testing.B) {
			protected, _ := costly(b, i)
			b.ReportAllocs()
			for b.Loop() {
				protected()
			}
		})
	}
}
