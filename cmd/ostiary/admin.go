package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
)

// newAdminHandler serves health and metrics on the second listener (D34). It
// needs no sign-in, so a page in a browser must not reach it: only GET and HEAD,
// no cross-site request, and no Host that a DNS server could point here.
func newAdminHandler(cfg *config.Config, metrics http.Handler, ready func(context.Context) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := ready(ctx); err != nil {
			answer(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
		answer(w, http.StatusOK, "ready")
	})
	mux.Handle("GET /metrics", metrics)
	if cfg.DebugPprof {
		addPprof(mux)
	}
	return guardAdmin(cfg, mux)
}

func addPprof(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}

func guardAdmin(cfg *config.Config, next http.Handler) http.Handler {
	unix := strings.HasPrefix(cfg.AdminListen, "unix:")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		switch {
		case !unix && !isAdminHost(cfg, r.Host):
			answer(w, http.StatusMisdirectedRequest, "this host is not served here; use the address, or add it to allowed_hosts")
		case isCrossSite(r):
			answer(w, http.StatusForbidden, "not for pages of other sites")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isAdminHost accepts what no DNS server can rebind: IP addresses, localhost,
// and the names the operator added.
func isAdminHost(cfg *config.Config, hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return true
	}
	return slices.Contains(cfg.AllowedHosts, host) || slices.Contains(cfg.AllowedHosts, hostport)
}

// isCrossSite reports a browser's request on behalf of another site.
func isCrossSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return r.Header.Get("Origin") != "" || site != "" && site != "none" && site != "same-origin"
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text)
}
