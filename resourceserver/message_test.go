package resourceserver

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func call(tool string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `"}}`
}

func TestSC09_ReadMessages(t *testing.T) {
	t.Parallel()
	pings := strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 99)
	var hundred []Operation
	for range 99 {
		hundred = append(hundred, Operation{Method: "ping"})
	}
	for _, tt := range []struct {
		name, body string
		want       []Operation // nil: refused
	}{
		{"tool", call("a"), []Operation{{Method: "tools/call", Name: "a"}}},
		{"escaped names", `{"\u006dethod":"tools\/call","id":1,"par\u0061ms":{"n\u0061me":"\u0061"}}`, []Operation{{Method: "tools/call", Name: "a"}}},
		{"answer to the server", `{"jsonrpc":"2.0","id":1,"result":{}}`, []Operation{}},
		{"null params", `{"method":"ping","params":null}`, []Operation{{Method: "ping"}}},
		{"tools/call after 99 pings", "[" + pings + call("a") + "]", append(hundred, Operation{Method: "tools/call", Name: "a"})},
		{"arguments in any case", `{"method":"tools/call","params":{"name":"a","arguments":{"Name":"b","name":"c","name":"d"}}}`,
			[]Operation{{Method: "tools/call", Name: "a"}}},
		{"completion of a prompt", `{"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"}}}`,
			[]Operation{{Method: "completion/complete", Name: "p"}}},
		{"subscriptions", `{"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:b","a:c"]}}}`,
			[]Operation{{Method: "subscriptions/listen"}, {Method: "resources/subscribe", Name: "a:b"}, {Method: "resources/subscribe", Name: "a:c"}}},
		{"a method that 2026-07-28 removed", `{"method":"resources/subscribe","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
			[]Operation{{Method: "resources/subscribe"}}},
		{"the same in 2025-11-25", `{"method":"resources/subscribe","params":{}}`, nil},
		{"the same with a name that is none", `{"method":"resources/subscribe","params":{"uri":1,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, nil},
		{"a hundred and one messages", "[" + pings + pings + call("a") + "]", nil},
		{"Method beside method", `{"method":"ping","Method":"tools/call"}`, nil},
		{"METHOD alone", `{"METHOD":"tools/call","result":{}}`, nil},
		{"method twice", `{"method":"ping","method":"tools/call"}`, nil},
		{"method twice, once escaped", `{"method":"ping","m\u0065thod":"tools/call"}`, nil},
		{"paramſ", `{"method":"tools/call","params":{"name":"a"},"paramſ":{"name":"b"}}`, nil},
		{"paramſ alone", `{"method":"ping","paramſ":{"name":"b"}}`, nil},
		{"K and k", "{\"method\":\"x\",\"\u212a\":1,\"k\":2}", nil},
		{"name twice", `{"method":"tools/call","params":{"name":"a","name":"b"}}`, nil},
		{"Name beside name", `{"method":"tools/call","params":{"name":"a","Name":"b"}}`, nil},
		{"URI of a resource", `{"method":"resources/read","params":{"uri":"a:b","URI":"a:c"}}`, nil},
		{"argument in two cases", `{"method":"x","params":{"a":1,"A":2}}`, nil},
		{"params as array", `{"method":"tools/call","params":["a"]}`, nil},
		{"params as array of an unknown method", `{"method":"x","params":["a"]}`, nil},
		{"params as string", `{"method":"ping","params":"a"}`, nil},
		{"name as number", `{"method":"tools/call","params":{"name":1}}`, nil},
		{"name as null", `{"method":"tools/call","params":{"name":null}}`, nil},
		{"NUL in a name", `{"method":"tools/call","params":{"name":"a\u0000b"}}`, nil},
		{"NUL in the method", `{"method":"tools/call\u0000","params":{"name":"a"}}`, nil},
		{"NUL in the body", "{\"method\":\"ping\"}\x00", nil},
		{"byte order mark", "\ufeff" + call("a"), nil},
		{"UTF-16", "{\x00\"\x00m\x00", nil},
		{"not UTF-8", "{\"method\":\"\xff\"}", nil},
		{"second message", call("a") + call("b"), nil},
		{"trailing comma", `{"method":"ping",}`, nil},
		{"comment", `{"method":"ping"/**/}`, nil},
		{"single quotes", `{'method':'ping'}`, nil},
		{"NaN", `{"method":"ping","id":NaN}`, nil},
		{"deep nesting", `{"method":"x","params":{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}}`, nil},
		{"a little too deep nesting", `{"method":"x","params":{"a":` + strings.Repeat("[", 130) + strings.Repeat("]", 130) + `}}`, nil},
		{"deep nesting that somebody may mean", `{"method":"x","params":{"a":` + strings.Repeat("[", 120) + strings.Repeat("]", 120) + `}}`,
			[]Operation{{Method: "x"}}},
		{"thousands of members", `{"method":"x"` + strings.Repeat(`,"a":1`, 5000) + `}`, nil},
		{"batch in a batch", "[[" + call("a") + "]]", nil},
		{"batch of nothing", "[]", nil},
		{"batch with a number", "[" + call("a") + ",1]", nil},
		{"batch and more", "[" + call("a") + "]" + call("b"), nil},
		{"id as object", `{"id":{},"method":"ping"}`, nil},
		{"neither method nor result", `{"jsonrpc":"2.0","id":1}`, nil},
		{"method as null", `{"method":null}`, nil},
		{"completion of a prompt and a resource", `{"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p","uri":"a:b"}}}`, nil},
		{"completion of another type", `{"method":"completion/complete","params":{"ref":{"type":"ref/prompt","uri":"a:b"}}}`, nil},
		{"a NUL in a member's name", `{"method\u0000":"tools/call","method":"ping"}`, nil},
		{"a control character in a name of params", `{"method":"ping","params":{"name\u0085":"a"}}`, nil},
		{"half a surrogate pair in a member's name", `{"method":"ping","method\ud800":1}`, nil},
		{"half a surrogate pair in a tool's name", `{"method":"tools/call","params":{"name":"a\udc00"}}`, nil},
		{"half a surrogate pair in the method", `{"method":"tools/call\ud800","params":{"name":"a"}}`, nil},
		{"a surrogate pair", `{"method":"tools/call","params":{"name":"\ud83d\ude00"}}`, []Operation{{Method: "tools/call", Name: "\U0001f600"}}},
		{"Method in escapes", `{"method":"ping","\u004dethod":"tools/call"}`, nil},
		{"_meta twice a member", `{"method":"ping","params":{"_meta":{"a":1,"a":2}}}`, nil},
		{"a version that is a number", `{"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":1}}}`, nil},
		{"_meta null", `{"method":"ping","params":{"_meta":null}}`, []Operation{{Method: "ping"}}},
		{"a huge id", `{"id":` + strings.Repeat("9", 1<<20) + `,"method":"ping"}`, []Operation{{Method: "ping"}}},
		{"a huge id in a string", `{"id":"` + strings.Repeat("9", 1<<20) + `","method":"ping"}`, []Operation{{Method: "ping"}}},
		{"id true", `{"id":true,"method":"ping"}`, nil},
		{"id a list", `{"id":[1],"method":"ping"}`, nil},
		{"id twice", `{"id":1,"id":2,"method":"ping"}`, nil},
		{"ID beside id", `{"id":1,"ID":2,"method":"ping"}`, nil},
		{"overlong UTF-8", "{\"method\":\"\xc0\xaf\"}", nil},
		{"UTF-8 of a surrogate", "{\"method\":\"\xed\xa0\x80\"}", nil},
		{"form feed between", "{\f\"method\":\"ping\"}", nil},
		{"no-break space before", "\u00a0" + call("a"), nil},
		{"batch with a trailing comma", "[" + call("a") + ",]", nil},
		{"batch with null", "[null]", nil},
		{"batch in white space", " [ " + call("a") + " ] ", []Operation{{Method: "tools/call", Name: "a"}}},
		{"two lines", call("a") + "\n" + call("b"), nil},
		{"cut off", strings.TrimSuffix(call("a"), "}"), nil},
		{"completion, Ref", `{"method":"completion/complete","params":{"Ref":{"type":"ref/prompt","name":"p"}}}`, nil},
		{"subscription to a number", `{"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":[1]}}}`, nil},
		{"subscriptions twice", `{"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":[],"ResourceSubscriptions":["a:b"]}}}`, nil},
		{"empty", "", nil}, {"white space", " \n", nil}, {"null", "null", nil}, {"string", `"a"`, nil},
	} {
		t.Run("SC-09 "+tt.name, func(t *testing.T) {
			t.Parallel()
			list, _, err := readMessages([]byte(tt.body))
			if (err != nil) != (tt.want == nil) {
				t.Fatalf("readMessages = %v, %v", list, err)
			}
			if err != nil {
				return
			}
			got := []Operation{}
			for _, m := range list {
				got = append(got, m.ops...)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("operations (-want +got):\n%s", d)
			}
		})
	}
}

// FuzzReadMessages holds the reader against encoding/json, which takes the last
// of repeated members and folds their case: what is accepted must mean the same
// to it and to a parser by exact name.
func FuzzReadMessages(f *testing.F) {
	for _, s := range []string{
		call("a"), "[" + call("a") + `,{"method":"ping"}]`, `{"method":"ping","Method":"tools/call"}`, `{"method":"a","method":"b"}`,
		`{"method":"tools/call","params":{"name":"a","Name":"b"}}`, `{"method":"resources/read","params":{"uri":"a:b"},"paramſ":{}}`,
		`{"\u006dethod":"ping"}`, `[]`, `{}`, "\xff", `{"method":1}`, `{}{}`, `{"id":null,"result":{}}`,
		`{"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"}}}`,
		`{"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:b"]}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		list, batch, err := readMessages(body)
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed: what is forwarded is not what was checked")
		}
		if err != nil {
			return
		}
		raws := []json.RawMessage{body}
		if batch {
			raws = nil
			if err := json.Unmarshal(body, &raws); err != nil {
				t.Fatalf("a batch that encoding/json refuses: %v", err)
			}
		}
		if len(raws) != len(list) {
			t.Fatalf("%d messages, encoding/json reads %d", len(list), len(raws))
		}
		for i, raw := range raws {
			checkAgainstOracle(t, raw, list[i])
		}
	})
}

func checkAgainstOracle(t *testing.T, raw []byte, m message) {
	t.Helper()
	var folded struct {
		Method *string         `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	var exact map[string]json.RawMessage
	if err := json.Unmarshal(raw, &folded); err != nil {
		t.Fatalf("a message that encoding/json refuses: %v", err)
	}
	if err := json.Unmarshal(raw, &exact); err != nil {
		t.Fatal(err)
	}
	method := ""
	if folded.Method != nil {
		method = *folded.Method
	}
	if _, has := exact["method"]; has != (folded.Method != nil) || method != m.method {
		t.Fatalf("method %q, encoding/json reads %q", m.method, method)
	}
	member := namedBy[m.method]
	if member == "" {
		return
	}
	var named struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
	}
	var params map[string]any
	_ = json.Unmarshal(folded.Params, &named) // the other one may be no string
	if err := json.Unmarshal(exact["params"], &params); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"name": named.Name, "uri": named.URI}[member]; m.name != want || params[member] != m.name {
		t.Fatalf("name %q, encoding/json reads %q and %v", m.name, want, params[member])
	}
}
