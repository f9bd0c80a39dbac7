package stdio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// drainTimeout is how long output is still read after the process has ended: what
// has left its group may hold the pipes open.
const drainTimeout = time.Second

var errGone = errors.New("the MCP server has ended")

// child is a running process and its three pipes.
type child struct {
	cmd                   *exec.Cmd
	stdin, stdout, stderr *os.File
	in                    chan []byte   // lines for stdin
	stopping              chan struct{} // closed when nothing more is written
	exited                chan struct{} // closed when the process is reaped
	stopOnce              sync.Once

	mu     sync.Mutex
	reaped bool // the process's number may mean another one
}

// observer hears what a child writes and that it has ended, which is the last
// call. It is called from goroutines of the child.
type observer interface {
	receive(line []byte, cut bool) // of standard output
	logLine(line []byte, cut bool) // of standard error
	ended(state string)
}

// startChild starts a process in a group of its own. Nothing is read or written
// before run.
func startChild(l *launcher, cmd *exec.Cmd) (*child, error) {
	c := &child{cmd: cmd, in: make(chan []byte), stopping: make(chan struct{}), exited: make(chan struct{})}
	isolate(c.cmd)
	theirs, err := c.pipes()
	if err == nil {
		err = l.start(c.cmd)
	}
	closeFiles(theirs...)
	if err != nil {
		closeFiles(c.stdin, c.stdout, c.stderr)
		return nil, fmt.Errorf("start the MCP server: %w", err)
	}
	return c, nil
}

// run moves lines both ways until the process has ended.
func (c *child) run(maxLine int, l observer) {
	readers := new(sync.WaitGroup)
	readers.Go(func() { readLines(c.stdout, maxLine, l.receive) })
	readers.Go(func() { readLines(c.stderr, maxLogLine, l.logLine) })
	go c.write()
	go c.wait(readers, l.ended)
}

// pipes makes the child's standard files and returns its ends of them. They are
// our own pipes, not exec's: Wait would close exec's before all is read.
func (c *child) pipes() (theirs []*os.File, err error) {
	files := make([]*os.File, 6)
	for i := range 3 {
		if files[2*i], files[2*i+1], err = os.Pipe(); err != nil {
			closeFiles(files...)
			return nil, err
		}
	}
	c.cmd.Stdin, c.stdin = files[0], files[1]
	c.stdout, c.cmd.Stdout = files[2], files[3]
	c.stderr, c.cmd.Stderr = files[4], files[5]
	return []*os.File{files[0], files[3], files[5]}, nil
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// send gives the child a line, which must end with a newline and have no other.
func (c *child) send(ctx context.Context, line []byte) error {
	select {
	case <-c.stopping: // also when the writer is ready
		return errGone
	default:
	}
	select {
	case c.in <- line:
		return nil
	case <-c.stopping:
		return errGone
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *child) write() {
	for {
		select {
		case line := <-c.in:
			if _, err := c.stdin.Write(line); err != nil {
				c.closeInput() // it will never hear again
				return
			}
		case <-c.stopping:
			return
		}
	}
}

// closeInput is the polite end of a stdio server (MCP transports, shutdown). What
// does not follow it is ended by stop.
func (c *child) closeInput() {
	c.stopOnce.Do(func() {
		close(c.stopping)
		_ = c.stdin.Close()
	})
}

// stop ends the process: by the end of its input, then SIGTERM to its group, then
// SIGKILL, with timeout in between. It returns when the process has ended.
func (c *child) stop(timeout time.Duration) {
	c.closeInput()
	for _, signal := range []func(int){terminateGroup, killGroup} {
		t := time.NewTimer(timeout)
		select {
		case <-c.exited:
			t.Stop()
			return
		case <-t.C:
			c.signal(signal)
		}
	}
	<-c.exited
}

func (c *child) signal(send func(pid int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		send(c.cmd.Process.Pid)
	}
}

// wait reaps the process, and kills what it has left behind in its group.
func (c *child) wait(readers *sync.WaitGroup, ended func(state string)) {
	awaitExit(c.cmd)
	c.mu.Lock()
	killGroup(c.cmd.Process.Pid)
	_ = c.cmd.Wait()
	c.reaped = true
	c.mu.Unlock()
	close(c.exited)
	c.closeInput()
	t := time.AfterFunc(drainTimeout, func() { closeFiles(c.stdout, c.stderr) })
	readers.Wait()
	t.Stop()
	closeFiles(c.stdout, c.stderr)
	ended(c.cmd.ProcessState.String())
}
