package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/ostiary-auth/ostiary/internal/gateway"
	"github.com/ostiary-auth/ostiary/resourceserver"
)

// usedPath is where a process tells the processor time that it used.
const usedPath = "/used"

// answer is what the upstream says.
var answer = `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` + strings.Repeat("note ", 400) + `"}]}}`

// serve is one of the processes: it prints its URL and serves until it is ended.
func serve(role string) error {
	h, err := handler(role)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+usedPath, writeUsed)
	mux.Handle("/", h)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	go endWithParent()
	return (&http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}).Serve(l)
}

// endWithParent ends the process when its standard input does.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func handler(role string) (http.Handler, error) {
	upstream := os.Getenv("BENCH_UPSTREAM")
	switch role {
	case "upstream":
		return http.HandlerFunc(serveAnswer), nil
	case "plain":
		target, err := url.Parse(upstream + "/mcp")
		if err != nil {
			return nil, err
		}
		return &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL, r.Out.Host = target, "" },
			// As the gateway's: the default of two idle connections would compare dialing.
			Transport: &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second,
				DisableCompression: true},
		}, nil
	case "gateway":
		return gateway.New(gateway.Options{Upstream: upstream + "/mcp", ResourceServer: resourceserver.Options{
			Resource: resource, AllowedHosts: []string{"127.0.0.1"},
			Issuers: []resourceserver.Issuer{{Identifier: issuer, JWKS: []byte(os.Getenv("BENCH_JWKS"))}}}})
	}
	return nil, fmt.Errorf("BENCH_ROLE %q is not known", role)
}

func serveAnswer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer)
}

func writeUsed(w http.ResponseWriter, _ *http.Request) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprint(w, u.Utime.Nano()+u.Stime.Nano())
}
