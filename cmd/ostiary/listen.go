package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/ostiary-auth/ostiary/internal/config"
)

// listeners are the ports of one process.
type listeners struct {
	public []net.Listener
	admin  net.Listener
}

// listen takes every port or none.
func listen(cfg *config.Config) (_ *listeners, err error) {
	l := &listeners{}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if err := l.listenPublic(cfg); err != nil {
		return nil, err
	}
	l.admin, err = listenAdmin(cfg.AdminListen)
	return l, err
}

// listenPublic binds listen. In development mode both loopback addresses are
// bound, so that no other program can answer for localhost on the other (D4).
func (l *listeners) listenPublic(cfg *config.Config) error {
	first, err := listenTCP("listen", cfg.Listen)
	if err != nil {
		return err
	}
	l.public = append(l.public, first)
	if !cfg.Dev() {
		return nil
	}
	bound := netip.MustParseAddrPort(first.Addr().String())
	twin := "::1"
	if bound.Addr().Is6() {
		twin = "127.0.0.1"
	}
	if !hasAddress(twin) {
		return nil
	}
	second, err := listenTCP("listen", net.JoinHostPort(twin, strconv.Itoa(int(bound.Port()))))
	if err != nil {
		return err
	}
	l.public = append(l.public, second)
	return nil
}

// hasAddress reports whether this machine can listen on a loopback address:
// containers often lack ::1.
func hasAddress(host string) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func listenTCP(key, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, withHint(fmt.Errorf("%s: %s is taken by another program", key, addr),
			"stop it, or choose another port: --%s", strings.ReplaceAll(key, "_", "-"))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return l, nil
}

// listenAdmin binds host:port or unix:/path.
func listenAdmin(addr string) (net.Listener, error) {
	path, ok := strings.CutPrefix(addr, "unix:")
	if !ok {
		return listenTCP("admin_listen", addr)
	}
	if err := removeStaleSocket(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("admin_listen: %w", err)
	}
	return l, nil
}

// removeStaleSocket removes the socket of a process that was killed.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("admin_listen: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("admin_listen: %s is there and is no socket", path)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close()
		return fmt.Errorf("admin_listen: %s is in use by another process", path)
	}
	return os.Remove(path)
}

// addrs are the public addresses as bound.
func (l *listeners) addrs() []string {
	var list []string
	for _, p := range l.public {
		list = append(list, p.Addr().String())
	}
	return list
}

// adminURL is where the admin listener answers, for people.
func (l *listeners) adminURL() string {
	if l.admin.Addr().Network() == "unix" {
		return "unix:" + l.admin.Addr().String() + ":"
	}
	return "http://" + l.admin.Addr().String()
}

func (l *listeners) close() {
	for _, p := range append([]net.Listener{l.admin}, l.public...) {
		if p != nil {
			_ = p.Close() // http.Server has closed it already, or start-up failed
		}
	}
}
