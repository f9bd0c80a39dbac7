package netguard_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// lookUp is a resolver that answers all names alike.
type lookUp func() ([]netip.Addr, error)

func (l lookUp) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return l() }

// Only what may pass is ErrUnreachable: callers tell it apart from what we refuse
// and from what is not there (A19, CI-15).
func TestErrUnreachable(t *testing.T) {
	t.Parallel()
	cut := testkit.NewHTTPSHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
			return
		}
		if r.URL.Path == "/encoded" {
			w.Header().Set("Content-Encoding", "br")
			return
		}
		panic(http.ErrAbortHandler)
	}))
	expired := testkit.NewExpiredHTTPSHost(t, http.NotFoundHandler(), "expired.example")
	known := testkit.Outbound(t, cut, expired)
	with := func(l lookUp, dial error) *netguard.Client {
		o := netguard.Options{Resolver: l, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, dial }}
		c, err := netguard.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	to := func(a string) lookUp {
		return func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr(a)}, nil }
	}
	reset := errors.New("connection reset by peer")
	for name, c := range map[string]struct {
		client      *netguard.Client
		url         string
		unreachable bool
	}{
		"no answer":            {known, cut.URL + "/", true},
		"half a body":          {known, cut.URL + "/body", true},
		"certificate expired":  {known, expired.URL + "/", true},
		"connection":           {with(to("93.184.216.34"), reset), "https://app.example/", true},
		"DNS away":             {with(func() ([]netip.Addr, error) { return nil, &net.DNSError{IsTimeout: true} }, reset), "https://app.example/", true},
		"no such name":         {with(func() ([]netip.Addr, error) { return nil, &net.DNSError{IsNotFound: true} }, reset), "https://app.example/", false},
		"name without address": {with(func() ([]netip.Addr, error) { return nil, nil }, reset), "https://app.example/", false},
		"private by DNS":       {with(to("10.0.0.1"), reset), "https://app.example/", false},
		"an address":           {known, "https://127.0.0.1/", false},
		"encoded":              {known, cut.URL + "/encoded", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.client.Get(t.Context(), c.url, netguard.GetOptions{})
			if err == nil || errors.Is(err, netguard.ErrUnreachable) != c.unreachable {
				t.Errorf("%v, want unreachable %t", err, c.unreachable)
			}
		})
	}
}
