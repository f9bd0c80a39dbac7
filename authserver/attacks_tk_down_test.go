package authserver_test

import (
	"database/sql"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// wantUnavailable checks A21: the database is away, so nobody learns anything
// else than to come back.
func wantUnavailable(t *testing.T, got answer) {
	t.Helper()
	want(t, got, 503, "temporarily_unavailable")
	if got.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	if strings.Contains(got.raw, "SQL") || strings.Contains(got.raw, "127.0.0.1") || strings.Contains(got.raw, "locked") {
		t.Errorf("the answer tells of the database: %s", got.raw)
	}
}

// outage runs code, refresh and revocation while the database is
// away, and shows that code and token still work afterwards (TK-15, A21).
func outage(t *testing.T, k *kit, away func(fn func())) {
	t.Helper()
	a := k.register(loopbackRedirect)
	token, code := k.connect(a, nil).body.RefreshToken, k.code(a, nil)
	before := k.rowsBut()
	requests := []url.Values{codeForm(a, code), {"grant_type": {"refresh_token"}, "refresh_token": {token}}, {"token": {token}}}
	answers := make([]answer, len(requests))
	away(func() {
		var done sync.WaitGroup
		for i, path := range []string{"/token", "/token", "/revoke"} {
			done.Go(func() {
				var err error
				if answers[i], err = k.tryPost(path, a, requests[i]); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
	})
	for _, got := range answers {
		wantUnavailable(t, got)
	}
	if after := k.rowsBut(); strings.Join(before, "\n") != strings.Join(after, "\n") {
		t.Error("a refused request changed the database")
	}
	want(t, k.redeem(a, code, nil), 200, "")
	want(t, k.refresh(a, token, nil), 200, "")
}

func TestTK15_A21_PostgresIsAway(t *testing.T) {
	t.Parallel()
	for _, how := range []outageKind{refuses, hangsUp, hangs} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			var p *proxy
			db := testkit.OpenPostgres(t, func(o *sqlstore.Options) { p = newProxy(t, o) })
			outage(t, newKit(t, db), func(fn func()) {
				p.cut(how)
				defer p.restore(t)
				fn()
			})
		})
	}
}

// A lock that another process holds is an outage, too: reads go on, writes wait
// for the busy timeout.
func TestTK15_A21_SQLiteIsLocked(t *testing.T) {
	t.Parallel()
	path := testkit.SQLitePath(t)
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	outage(t, newKit(t, db), func(fn func()) {
		lock, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+"?_txlock=immediate")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = lock.Close() }()
		tx, err := lock.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		fn()
	})
}

// outageKind is how a database is away.
type outageKind string

const (
	refuses outageKind = "refuses connections"
	hangsUp outageKind = "hangs up"
	hangs   outageKind = "does not answer"
)

// proxy stands between the store and PostgreSQL, so that a test can take the
// database away.
type proxy struct {
	target, addr string

	mu     sync.Mutex
	away   outageKind // "" while the database is there
	listen net.Listener
	conns  []net.Conn
}

// newProxy points o at a proxy to the database it names.
func newProxy(t *testing.T, o *sqlstore.Options) *proxy {
	t.Helper()
	u, err := url.Parse(o.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: u.Host, addr: "127.0.0.1:0"}
	p.start(t)
	u.Host = p.addr
	o.URL = u.String()
	t.Cleanup(func() { p.cut(refuses) })
	return p
}

func (p *proxy) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listen, p.addr, p.away = l, l.Addr().String(), ""
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.serve(c)
		}
	}()
}

func (p *proxy) serve(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to, err := net.Dial("tcp", p.target)
	if err != nil || p.away == hangsUp {
		_ = c.Close()
		return
	}
	p.conns = append(p.conns, c, to)
	go p.pump(to, c)
	go p.pump(c, to)
}

// pump copies until one side closes; what is sent while the database does not
// answer is lost.
func (p *proxy) pump(to, from net.Conn) {
	defer func() { _ = to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		away := p.away != ""
		p.mu.Unlock()
		if away {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// cut takes the database away.
func (p *proxy) cut(how outageKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = how
	if how == refuses {
		_ = p.listen.Close()
	}
	if how != hangs {
		p.closeAll()
	}
}

func (p *proxy) closeAll() {
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// restore brings the database back, to new connections.
func (p *proxy) restore(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	_ = p.listen.Close()
	p.closeAll()
	p.mu.Unlock()
	p.start(t)
}
