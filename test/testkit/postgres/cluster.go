// Package postgres runs throwaway PostgreSQL clusters for tests from the
// binaries installed on this machine: no container, no service, no trace left.
package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNoBinaries reports that PostgreSQL's server programs are not installed here.
var ErrNoBinaries = errors.New("PostgreSQL's server programs (initdb, postgres) are not installed")

// Options configures Start.
type Options struct {
	// Durable keeps fsync and synchronous_commit on, for tests that kill the
	// server. Default off: a unit test's data need not survive a power cut.
	Durable bool
}

// Cluster is a running PostgreSQL server with a data directory of its own.
type Cluster struct {
	url  string
	dir  string
	cmd  *exec.Cmd
	stop io.Closer
	once sync.Once
}

// superuser is the role that the tests connect as.
const superuser = "ostiary"

// supervise runs the server until its standard input closes, which happens at
// the latest when the process that holds the other end dies, however it dies.
const supervise = `"$1" -D "$2/data" <&- >"$2/log" 2>&1 &
pid=$!
read -r _
kill -INT "$pid" 2>/dev/null
wait "$pid"
cd / && rm -rf "$2"`

// Start makes and starts a cluster that listens on a free loopback port. It
// ends with Close, or with this process.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	bin, err := binDir()
	if err != nil {
		return nil, err
	}
	var last error
	for range 3 { // a free port may be taken between our look and the server's start
		c, err := start(ctx, bin, o)
		if err == nil {
			return c, nil
		}
		last = err
	}
	return nil, last
}

func start(ctx context.Context, bin string, o Options) (_ *Cluster, err error) {
	cred, err := credential()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent(o), "ostiary-postgres-")
	if err != nil {
		return nil, fmt.Errorf("make cluster directory: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	password := rand.Text()
	if err := initialize(ctx, bin, dir, password, cred); err != nil {
		return nil, err
	}
	port, err := configure(dir, o)
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(superuser, password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "/postgres", RawQuery: "sslmode=disable"}
	return run(ctx, bin, dir, u.String(), cred)
}

const (
	memory = "/dev/shm" // Linux's file system in memory
	needed = 2 << 30    // bytes, of which a run of all tests uses a fraction
)

// parent is the directory in which a cluster is made, "" for the usual one. Tests make
// and drop hundreds of databases, and in memory that costs a third.
func parent(o Options) string {
	var at syscall.Statfs_t
	if o.Durable || syscall.Statfs(memory, &at) != nil || uint64(at.Bavail)*uint64(at.Bsize) < needed {
		return ""
	}
	probe, err := os.MkdirTemp(memory, "ostiary-probe-")
	if err != nil {
		return ""
	}
	_ = os.Remove(probe)
	return memory
}

// initialize runs initdb as an unprivileged user; connections need the password,
// since every user of this machine reaches the port.
func initialize(ctx context.Context, bin, dir, password string, cred *syscall.Credential) error {
	pwfile := filepath.Join(dir, "password")
	if err := os.WriteFile(pwfile, []byte(password), 0o600); err != nil {
		return fmt.Errorf("write cluster password: %w", err)
	}
	if cred != nil {
		for _, name := range []string{dir, pwfile} {
			if err := os.Chown(name, int(cred.Uid), int(cred.Gid)); err != nil {
				return fmt.Errorf("hand cluster to an unprivileged user: %w", err)
			}
		}
	}
	cmd := command(ctx, dir, cred, filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", superuser,
		"--pwfile", pwfile, "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// configure picks the port and appends our settings to the cluster's configuration.
func configure(dir string, o Options) (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	conf := fmt.Sprintf(`
port = %d
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 500
shared_buffers = 64MB
max_wal_size = 256MB
`, port)
	if !o.Durable {
		conf += "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n"
	}
	f, err := os.OpenFile(filepath.Join(dir, "data", "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return 0, fmt.Errorf("configure cluster: %w", err)
	}
	_, err = f.WriteString(conf)
	return port, errors.Join(err, f.Close())
}

func run(ctx context.Context, bin, dir, dsn string, cred *syscall.Credential) (*Cluster, error) {
	cmd := command(context.WithoutCancel(ctx), dir, cred, "/bin/sh", "-c", supervise, "sh", filepath.Join(bin, "postgres"), dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start cluster: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start cluster: %w", err)
	}
	c := &Cluster{url: dsn, dir: dir, cmd: cmd, stop: stdin}
	if err := c.await(ctx); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		c.Close()
		return nil, fmt.Errorf("start cluster: %w\n%s", err, log)
	}
	return c, nil
}

// await returns when the server answers.
func (c *Cluster) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, c.url)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("server does not answer: %w", err)
		case <-tick.C:
		}
	}
}

// URL returns the connection URL of the superuser at the database "postgres".
func (c *Cluster) URL() string { return c.url }

// Close stops the server and removes its files. It may be called more than once.
func (c *Cluster) Close() {
	c.once.Do(func() {
		_ = c.stop.Close()
		_ = c.cmd.Wait() // the supervisor's status tells nothing about the tests
	})
}

// command runs a program as cred in dir, in a process group of its own so that
// an interrupt at the terminal leaves the cluster to its supervisor.
func command(ctx context.Context, dir string, cred *syscall.Credential, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: cred}
	return cmd
}

// credential returns whom to run the server as: ourselves, or when we are root,
// whom PostgreSQL refuses, the user postgres or nobody.
func credential() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}

// binDir finds the newest installed server, in Debian's folders or on PATH.
func binDir() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well-formed
	if len(found) > 0 {
		return filepath.Dir(found[len(found)-1]), nil
	}
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return "", ErrNoBinaries
	}
	if initdb, err = filepath.EvalSymlinks(initdb); err != nil {
		return "", ErrNoBinaries
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(initdb), "postgres")); err != nil {
		return "", ErrNoBinaries
	}
	return filepath.Dir(initdb), nil
}
