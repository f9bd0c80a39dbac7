package authclient

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// get asks a listener and returns status and body.
func get(t *testing.T, method, rawURL, host string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, rawURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func TestC8_Loopback(t *testing.T) {
	t.Parallel()
	opened := make(chan string, 1)
	l := &Loopback{Open: func(_ context.Context, u string) error { opened <- u; return nil }}
	a, err := l.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	redirect := a.RedirectURI()
	if !strings.HasPrefix(redirect, "http://127.0.0.1:") || !strings.HasSuffix(redirect, "/callback") {
		t.Fatalf("redirect URI %q", redirect)
	}
	if status, _, _ := get(t, http.MethodGet, redirect+"?code=early&state=", ""); status != http.StatusBadRequest {
		t.Errorf("before the request: %d", status)
	}
	type result struct {
		v   url.Values
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := a.Authorize(t.Context(), "https://as.example/authorize?state=s3cret")
		done <- result{v, err}
	}()
	if got := <-opened; got != "https://as.example/authorize?state=s3cret" {
		t.Errorf("opened %q", got)
	}
	for _, tt := range []struct {
		name, method, url, host string
		want                    int
	}{
		{name: "wrong state", method: http.MethodGet, url: redirect + "?code=x&state=guess", want: http.StatusBadRequest},
		{name: "no state", method: http.MethodGet, url: redirect + "?code=x", want: http.StatusBadRequest},
		{name: "two states", method: http.MethodGet, url: redirect + "?code=x&state=s3cret&state=guess", want: http.StatusBadRequest},
		{name: "POST", method: http.MethodPost, url: redirect + "?code=x&state=s3cret", want: http.StatusMethodNotAllowed},
		{name: "another path", method: http.MethodGet, url: strings.TrimSuffix(redirect, "/callback") + "/?code=x&state=s3cret", want: http.StatusNotFound},
		{name: "DNS rebinding", method: http.MethodGet, url: redirect + "?code=x&state=s3cret", host: "evil.example", want: http.StatusNotFound},
	} {
		if status, body, _ := get(t, tt.method, tt.url, tt.host); status != tt.want || strings.Contains(body, "guess") {
			t.Errorf("%s: %d %q", tt.name, status, body)
		}
	}
	status, body, h := get(t, http.MethodGet, redirect+"?code=x&state=s3cret&iss=i", "")
	if status != http.StatusOK || !strings.Contains(body, "You can close this window") || strings.Contains(body, "s3cret") {
		t.Errorf("answer: %d %q", status, body)
	}
	if h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("headers %v", h)
	}
	if status, _, _ := get(t, http.MethodGet, redirect+"?code=y&state=s3cret", ""); status != http.StatusGone {
		t.Errorf("a second answer: %d", status)
	}
	got := <-done
	if got.err != nil || got.v.Get("code") != "x" || got.v.Get("iss") != "i" {
		t.Errorf("callback %v, %v", got.v, got.err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(redirect); err == nil {
		t.Error("it listens after Close")
	}
}

func TestC8_LoopbackPorts(t *testing.T) {
	t.Parallel()
	l := &Loopback{Path: "/back"}
	first, err := l.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := l.beginAt(t.Context(), first.RedirectURI()) // taken
	if err != nil || second.RedirectURI() == first.RedirectURI() {
		t.Fatalf("%v, %v", second, err)
	}
	_ = second.Close()
	_ = first.Close()
	found := false
	for range 5 { // somebody else on this machine may have taken the port meanwhile
		next, err := l.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = next.Close()
		again, err := l.beginAt(t.Context(), next.RedirectURI())
		if err != nil {
			t.Fatal(err)
		}
		_ = again.Close()
		if found = again.RedirectURI() == next.RedirectURI(); found {
			break
		}
	}
	if !found {
		t.Error("it never listens where it listened before")
	}
	for _, other := range []string{"http://evil.example:80/back", "http://127.0.0.1:1/other", "::"} {
		a, err := l.beginAt(t.Context(), other)
		if err != nil || a.RedirectURI() == other {
			t.Errorf("%s: %v, %v", other, a, err)
			continue
		}
		_ = a.Close()
	}
	if _, err := (&Loopback{Path: "back?x"}).Begin(t.Context()); err == nil {
		t.Error("a Path with a query is accepted")
	}
}

func TestC8_LoopbackTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		timeout time.Duration
		want    string
	}{{0, "5m0s"}, {time.Second, "1s"}} {
		synctest.Test(t, func(t *testing.T) {
			a := &loopbackAttempt{loopback: &Loopback{Timeout: tt.timeout, Open: func(context.Context, string) error { return nil }}, arrived: make(chan url.Values, 1)}
			_, err := a.Authorize(t.Context(), "https://as.example/authorize?state=s")
			if !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// What servers name is opened by no shell, and not at all unless it is a web address.
func TestMM11_C8_WhatIsOpened(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "javascript:alert(1)", "JAVASCRIPT:alert(1)", "file:///etc/passwd", "file:/c:/windows/system32/calc.exe", "data:text/html,x", "vbscript:x",
		"a:$(cmd.exe /c whoami > c:\\temp\\pwned.txt)?response_type=code", // CVE-2025-6514
		"https://as.example/$(calc)\n", "https://as.example/ -flag", "-flag", "--args", "http://as.example/", "ftp://as.example/", "//as.example/x",
		"https://user@as.example/", "https://as.example/#x", "https:///x", "https://as.example:x/", "https://as.example\\@evil.example/", `https://as.example/"&calc&"`,
		"https://as.example/`id`", "https://as.example/|calc", "https://as.example/<x>", "ms-msdt:/id", "https://аs.example/", "mailto:x@y.example", "https://as.example/^calc",
		"https://as.example/%\x00", "https://[::1", "https://as.example:/x", "https://" + strings.Repeat("a", maxURL),
	} {
		if err := OpenBrowser(t.Context(), raw); !errors.Is(err, ErrRefused) {
			t.Errorf("OpenBrowser(%q) = %v", raw, err)
		}
		a := &loopbackAttempt{loopback: &Loopback{Open: func(_ context.Context, u string) error { t.Errorf("opened %q", u); return nil }}}
		if _, err := a.Authorize(t.Context(), raw); !errors.Is(err, ErrRefused) {
			t.Errorf("Authorize(%q) = %v", raw, err)
		}
	}
	for _, raw := range []string{"https://as.example/authorize?x=$(calc)&y=%60id%60", "http://127.0.0.1:8080/a", "http://localhost/a", "http://[::1]:1/a"} {
		if _, err := parseURL("URL", raw); err != nil {
			t.Errorf("parseURL(%q) = %v", raw, err)
		}
	}
}

// The URL is one argument, whatever a shell would make of it, and what is meant for
// this program alone is not inherited.
func TestMM11_OneArgument(t *testing.T) {
	if runtime.GOOS != "linux" {
		if name, _ := opener(runtime.GOOS); name == "" {
			t.Error("no opener")
		}
		return
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	script := "#!/bin/sh\n{ echo \"$#\"; echo \"$1\"; echo \"secret:$OSTIARY_SECRET\"; } > " + out + ".tmp && mv " + out + ".tmp " + out + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv("OSTIARY_SECRET", "s3cret")
	const raw = "https://as.example/a?x=$(calc)&y=;id&z='q'"
	if err := OpenBrowser(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		got, err := os.ReadFile(out)
		if err == nil {
			if string(got) != "1\nhttps://as.example/a?x=%24%28calc%29&y=%3Bid&z=%27q%27\nsecret:\n" {
				t.Errorf("the program got %q", got)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the program was not started")
		}
		runtime.Gosched()
	}
}

func TestOpeners(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"windows", "darwin", "linux", "freebsd"} {
		name, args := opener(system)
		if name == "" || slices.ContainsFunc(append(args, name), func(s string) bool {
			return strings.Contains(s, "cmd") || strings.Contains(s, "sh ") || strings.Contains(s, "powershell")
		}) {
			t.Errorf("%s: %s %v", system, name, args)
		}
	}
}

func TestPaste(t *testing.T) {
	t.Parallel()
	const ask = "https://as.example/authorize?state=s3cret"
	for _, tt := range []struct {
		name, typed, want string
		says              string
	}{
		{name: "the whole address", typed: "http://127.0.0.1/callback?code=x&state=s3cret\r\n", want: "x"},
		{name: "without a line's end", typed: "  http://127.0.0.1/callback?code=x&state=s3cret", want: "x"},
		{name: "a wrong line first", typed: "what?\nhttp://127.0.0.1/callback?code=x&state=s3cret\n", want: "x", says: "not an address"},
		{name: "of another login", typed: "http://127.0.0.1/callback?code=x&state=other\n", says: "another login"},
		{name: "cut off", typed: "http://127.0.0.1/callback?code=x\n", says: "not complete"},
		{name: "elsewhere", typed: "https://evil.example/callback?code=x&state=s3cret\n", says: "begins with http://127.0.0.1/callback"},
		{name: "nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			a, err := (&Paste{In: strings.NewReader(tt.typed), Out: &out}).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			v, err := a.Authorize(t.Context(), ask)
			if (err == nil) != (tt.want != "") || err == nil && v.Get("code") != tt.want {
				t.Errorf("%v, %v", v, err)
			}
			if !strings.Contains(out.String(), ask) || !strings.Contains(out.String(), tt.says) {
				t.Errorf("said %q", out.String())
			}
		})
	}
}

func TestPasteEndsWithItsContext(t *testing.T) {
	t.Parallel()
	in, typing := io.Pipe()
	t.Cleanup(func() { _ = typing.Close() })
	a, err := (&Paste{In: in, Out: io.Discard}).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Authorize(ctx, "https://as.example/authorize?state=s"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// A whole login by paste, as on a machine without a browser.
func TestPasteLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in, typing := io.Pipe()
	shown, out := io.Pipe()
	go func() {
		buf := make([]byte, 1<<16)
		n, _ := shown.Read(buf)
		for line := range strings.SplitSeq(string(buf[:n]), "\n") {
			if u, ok := strings.CutPrefix(line, "  http"); ok {
				resp, err := http.DefaultTransport.RoundTrip(must(http.NewRequest(http.MethodGet, "http"+u, nil)))
				if err == nil {
					_ = resp.Body.Close()
					_, _ = io.WriteString(typing, resp.Header.Get("Location")+"\n")
				}
			}
		}
		_, _ = io.Copy(io.Discard, shown)
	}()
	wantCall(t, w.client(func(o *Options) { o.Authorizer = &Paste{In: in, Out: out} }), "", http.StatusOK)
	if got := w.registrations[0]["redirect_uris"].([]any)[0]; got != "http://127.0.0.1/callback" {
		t.Errorf("redirect URI %v", got)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
