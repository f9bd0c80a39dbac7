package resourceserver

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// door refuses requests that a page could have made without being meant to: for
// a name that was rebound to this machine, or from an origin that is not served
// (MCP transports, security warning; JW-27).
type door struct {
	loopback bool     // the resource is on a loopback host
	hosts    []string // lower case
	origins  []string // lower case; nil is the default
	any      bool     // every origin is served

	// Header values that all answers share: nobody writes to them, and who
	// appends to them gets a copy.
	allowOrigin, exposeHeaders []string
}

func newDoor(o Options) (*door, error) {
	u, err := url.Parse(o.Resource)
	if err != nil {
		return nil, err
	}
	d := &door{loopback: isLoopbackHost(u.Hostname()), hosts: []string{strings.ToLower(u.Host)},
		allowOrigin: []string{"*"}, exposeHeaders: []string{exposedHeaders}}
	if u.Port() == "" { // a client may write the default port
		d.hosts = append(d.hosts, strings.ToLower(u.Host)+map[string]string{"https": ":443", "http": ":80"}[u.Scheme])
	}
	var errs []error
	for _, h := range o.AllowedHosts {
		if p, err := url.Parse("//" + h); err != nil || h == "" || p.Host != h || p.User != nil {
			errs = append(errs, fmt.Errorf("Options.AllowedHosts: %q is not a host", h))
		}
		d.hosts = append(d.hosts, strings.ToLower(h))
	}
	if o.AllowedOrigins != nil {
		d.origins = []string{}
	}
	for _, origin := range o.AllowedOrigins {
		if p, err := url.Parse(origin); origin != "*" && (err != nil || p.Scheme == "" || p.Host == "" || p.Scheme+"://"+p.Host != origin) {
			errs = append(errs, fmt.Errorf("Options.AllowedOrigins: %q is not an origin: scheme://host, and :port where it is not the default", origin))
		}
		d.origins = append(d.origins, strings.ToLower(origin))
	}
	d.any = d.origins == nil && !d.loopback || slices.Contains(d.origins, "*")
	return d, errors.Join(errs...)
}

// checkHost applies to everything that is served: a page at a rebound name may
// not even read the documents.
func (d *door) checkHost(r *http.Request) error {
	if slices.Contains(d.hosts, r.Host) || !d.loopback && !arrivedOnLoopback(r) || d.isHost(r.Host) {
		return nil // the first is nearly always true, and costs least
	}
	return forbidden("the Host of the request is not served here; the server's operator can allow it (AllowedHosts in Go, --allowed-host of ostiary gateway)")
}

func (d *door) isHost(host string) bool {
	if slices.Contains(d.hosts, strings.ToLower(host)) {
		return true
	}
	u, err := url.Parse("//" + host)
	if err != nil || u.Host != host {
		return false
	}
	// A proxy on this machine may ask for the address; a rebound name never is one.
	return isLoopbackHost(u.Hostname()) || slices.Contains(d.hosts, strings.ToLower(u.Hostname()))
}

// arrivedOnLoopback reports a connection to an address of this machine alone:
// what comes from outside comes through a proxy, which names a host of ours.
func arrivedOnLoopback(r *http.Request) bool {
	switch addr := r.Context().Value(http.LocalAddrContextKey).(type) {
	case *net.TCPAddr: // as net/http has it
		return addr.IP.IsLoopback()
	case net.Addr:
		a, err := netip.ParseAddrPort(addr.String())
		return err == nil && a.Addr().Unmap().IsLoopback()
	}
	return false
}

// checkOrigin applies to requests that need a token.
func (d *door) checkOrigin(r *http.Request) error {
	values := r.Header["Origin"]
	if len(values) == 0 {
		return nil
	}
	if len(values) == 1 && d.isOrigin(values[0]) {
		return nil
	}
	return forbidden("the Origin of the request is not served here; the server's operator can allow it (AllowedOrigins in Go, --allowed-origin of ostiary gateway)")
}

func (d *door) isOrigin(origin string) bool {
	origin = strings.ToLower(origin)
	if d.any || slices.Contains(d.origins, origin) {
		return true
	}
	if d.origins != nil {
		return false
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Scheme+"://"+u.Host == origin && isLoopbackHost(u.Hostname())
}

// isLoopbackHost reports a name or address that never leaves this machine.
func isLoopbackHost(host string) bool {
	host = strings.ToLower(host)
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
