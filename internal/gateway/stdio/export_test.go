//go:build unix

package stdio

import (
	"os/exec"
	"time"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// Escape is what makes a line harmless for the log.
var Escape = escape

// ReadMessages reads a body.
func ReadMessages(data []byte) (raw [][]byte, err error) {
	list, _, err := readMessages(data)
	for _, m := range list {
		raw = append(raw, m.raw)
	}
	return raw, err
}

// Sweep ends what is due by the clock of the options.
func (b *Bridge) Sweep() { b.sweep() }

// Children returns how many processes count.
func (b *Bridge) Children() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.all)
}

// Finds reports whether t reaches the session with this id.
func (b *Bridge) Finds(t *resourceserver.Token, id string) bool {
	s := b.find(t, id)
	if s != nil {
		b.release(s)
	}
	return s != nil
}

// SetTimes shortens what tests would wait for.
func (b *Bridge) SetTimes(heartbeat, probe time.Duration) { b.heartbeat, b.probeFor = heartbeat, probe }

// StartAlone starts a child that belongs to no session.
func StartAlone(command []string) error {
	_, err := startChild(newLauncher(), exec.Command(command[0], command[1:]...))
	return err
}
