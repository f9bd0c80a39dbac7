package main

import (
	"net"
	"time"
)

// stallTime is how long a client may take to read what was written to it.
const stallTime = time.Minute

// stallListener gives up connections whose clients read nothing. A write timeout of
// http.Server would also end the streams that are read well, but last.
type stallListener struct {
	net.Listener
	limit time.Duration
}

// Accept implements net.Listener.
func (l *stallListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &stallConn{Conn: conn, limit: l.limit}, nil
}

type stallConn struct {
	net.Conn
	limit time.Duration
}

// Write implements net.Conn: each write has its own time.
func (c *stallConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
