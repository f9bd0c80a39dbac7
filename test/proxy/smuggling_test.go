package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// answer is what nginx sent back for one request.
type answer struct {
	status int
	seen   bool // Ostiary made it
}

// send writes bytes as they are and reads answers until the connection ends.
func (f *front) send(t *testing.T, message string) []answer {
	t.Helper()
	conn := f.dial(t)
	if _, err := io.WriteString(conn, message); err != nil {
		t.Fatal(err)
	}
	_ = conn.CloseWrite() // nothing more comes: an unfinished message is refused at once
	var list []answer
	for r := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return list
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		list = append(list, answer{resp.StatusCode, resp.Header.Get("X-Seen") != ""})
	}
}

// TK-12: nginx and Ostiary read a message in one way or not at all. Whatever bytes
// arrive, Ostiary sees no request that nginx did not see too, and nothing of one
// connection reaches the requests of another: in the recommended configuration, and
// where somebody adds that nginx keeps its connections to Ostiary.
func TestTK12_BehindNginx(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"as recommended": false, "connections kept": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startNginx(t, kept)
			smuggle(t, f)
			f.mu.Lock()
			defer f.mu.Unlock()
			if shared := f.connections < f.requests; shared != kept {
				t.Errorf("%d requests over %d connections", f.requests, f.connections)
			}
		})
	}
}

func smuggle(t *testing.T, f *front) {
	const form, inner = "grant_type=authorization_code&code=x", "GET /smuggled HTTP/1.1\r\nHost: " + name + "\r\n\r\n"
	head := func(method, path string, lines ...string) string {
		return method + " " + path + " HTTP/1.1\r\nHost: " + name + "\r\nContent-Type: application/x-www-form-urlencoded\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
	}
	length := func(s string) string { return fmt.Sprintf("Content-Length: %d", len(s)) }
	chunked := func(s string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(s), s) }
	const te = "Transfer-Encoding: chunked"
	for _, tt := range []struct {
		name, message string
		body          string // of POST /token, when it is let through
		refused       bool   // nginx must not let it through
	}{
		{name: "a plain one", message: head("POST", "/token", length(form), "Connection: close") + form, body: form},
		{name: "chunked", message: head("POST", "/token", te, "Connection: close") + chunked(form), body: form},
		{name: "Content-Length and Transfer-Encoding", message: head("POST", "/token", "Content-Length: 4", te) + chunked(form) + inner, refused: true},
		{name: "the other way round", message: head("POST", "/token", te, length(form+inner)) + "0\r\n\r\n" + inner, refused: true},
		{name: "two lengths", message: head("POST", "/token", length(form), length(form+inner)) + form + inner, refused: true},
		{name: "the same length twice", message: head("POST", "/token", length(form), length(form)) + form, refused: true},
		{name: "a list of lengths", message: head("POST", "/token", "Content-Length: 4, 5") + form, refused: true},
		{name: "a signed length", message: head("POST", "/token", fmt.Sprintf("Content-Length: +%d", len(form))) + form, refused: true},
		{name: "a negative length", message: head("POST", "/token", "Content-Length: -1") + form, refused: true},
		{name: "a length beyond 64 bits", message: head("POST", "/token", "Content-Length: 18446744073709551652") + form, refused: true},
		{name: "chunked and gzip", message: head("POST", "/token", "Transfer-Encoding: gzip, chunked") + chunked(form), refused: true},
		{name: "chunked twice", message: head("POST", "/token", te, te) + chunked(form), refused: true},
		{name: "chunked, identity", message: head("POST", "/token", "Transfer-Encoding: chunked, identity") + chunked(form), refused: true},
		{name: "an encoding with a vertical tab", message: head("POST", "/token", "Transfer-Encoding: \x0bchunked", length(form)) + chunked(form), refused: true},
		{name: "an encoding in HTTP/1.0", message: strings.Replace(head("POST", "/token", te), "HTTP/1.1", "HTTP/1.0", 1) + chunked(form) + inner, refused: true},
		{name: "space before the colon", message: head("POST", "/token", length(form), "Transfer-Encoding : chunked", "Connection: close") + form + inner, refused: true},
		{name: "a folded encoding", message: head("POST", "/token", length(form), "X-A: b\r\n Transfer-Encoding: chunked", "Connection: close") + form + inner, refused: true},
		{name: "a folded value", message: head("POST", "/token", length(form), "Transfer-Encoding:\r\n chunked", "Connection: close") + form + inner},
		{name: "a folded first line", message: strings.Replace(head("POST", "/token", length(form), "Connection: close"), "Host:", " X: y\r\nHost:", 1) + form, refused: true},
		{name: "an encoding after a bare LF", message: head("POST", "/token", length(form), "X-A: b\nTransfer-Encoding: chunked") + chunked(form) + inner, refused: true},
		{name: "an encoding after a bare CR", message: head("POST", "/token", length(form), "X-A: b\rTransfer-Encoding: chunked", "Connection: close") + form + inner, refused: true},
		{name: "an encoding after NUL", message: head("POST", "/token", length(form), "X-A: b\x00\r\nTransfer-Encoding: chunked") + form + inner, refused: true},
		{name: "bare LF after the header", message: strings.ReplaceAll(head("POST", "/token", length(form), "Connection: close"), "\r\n", "\n") + form + inner, body: form},
		{name: "bare LF in a chunk", message: head("POST", "/token", te, "Connection: close") + fmt.Sprintf("%x\n%s\n0\n\n", len(form), form) + inner},
		{name: "a chunk size beyond 64 bits", message: head("POST", "/token", te) + "10000000000000024\r\n" + form + "\r\n0\r\n\r\n", refused: true},
		{name: "a chunk size with 0x", message: head("POST", "/token", te) + fmt.Sprintf("0x%x\r\n%s\r\n0\r\n\r\n", len(form), form), refused: true},
		{name: "a negative chunk size", message: head("POST", "/token", te) + "-1\r\n" + form + "\r\n0\r\n\r\n", refused: true},
		{name: "a line end in a chunk extension", message: head("POST", "/token", te, "Connection: close") + fmt.Sprintf("%x;a\nb\r\n%s\r\n0\r\n\r\n", len(form), form) + inner},
		{name: "a chunk that ends early", message: head("POST", "/token", te) + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(form)+50, form) + inner, refused: true},
		{name: "a length in a trailer", message: head("POST", "/token", te, "Connection: close") + fmt.Sprintf("%x\r\n%s\r\n0\r\nContent-Length: 3\r\n\r\n", len(form), form) + inner, body: form},
		{name: "no Host", message: strings.Replace(head("POST", "/token", length(form)), "Host: "+name+"\r\n", "", 1) + form, refused: true},
		{name: "two Hosts", message: head("POST", "/token", length(form), "Host: evil.example") + form, refused: true},
		{name: "a request line with two spaces and a version", message: "GET /token HTTP/1.1 HTTP/1.1\r\nHost: " + name + "\r\nConnection: close\r\n\r\n"},
		{name: "a GET with a body", message: head("GET", "/jwks.json", length(inner), "Connection: close") + inner},
		{name: "HTTP/2 cleartext", message: head("GET", "/jwks.json", "Connection: Upgrade, HTTP2-Settings, close", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA") + inner},
	} {
		t.Run("TK-12 "+tt.name, func(t *testing.T) { // one after the other: they share what arrived
			answers, arrived := f.send(t, tt.message), f.arrived()
			passed := 0
			for _, a := range answers {
				if a.seen {
					passed++
				}
			}
			if passed != len(arrived) {
				t.Errorf("nginx sent on %d requests and Ostiary saw %d: %+v", passed, len(arrived), arrived)
			}
			for _, a := range arrived {
				if a.path == "/smuggled" {
					t.Errorf("the hidden request arrived: %+v", arrived)
				}
			}
			if tt.refused && (passed > 0 || len(answers) > 0 && answers[0].status < 400) {
				t.Errorf("let through: %+v, answered %+v", arrived, answers)
			}
			if tt.body != "" && (len(arrived) != 1 || arrived[0].method != "POST" || arrived[0].path != "/token" || arrived[0].body != tt.body) {
				t.Errorf("arrived as %+v, want one POST /token with %q", arrived, tt.body)
			}
			// somebody else's connection afterwards
			after, arrived := f.send(t, head("GET", "/jwks.json", "Connection: close")), f.arrived()
			if len(after) != 1 || after[0] != (answer{200, true}) || len(arrived) != 1 || arrived[0].path != "/jwks.json" || arrived[0].body != "" {
				t.Errorf("the next request of another connection: %+v, arrived as %+v", after, arrived)
			}
		})
	}
}
