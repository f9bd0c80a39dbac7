package doctor

import (
	"context"
	"fmt"
	"time"
)

// errTimeOver ends an examination that a server delays.
var errTimeOver = fmt.Errorf("the time of the examination (%s) is over", totalTimeout)

// deadline ends the context of an examination when it has taken its time. It stands
// still while a person is asked.
type deadline struct {
	timer *time.Timer
	left  time.Duration
	since time.Time
}

// withDeadline returns a context that ends with errTimeOver after d.
func withDeadline(ctx context.Context, d time.Duration) (context.Context, *deadline, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	t := time.AfterFunc(d, func() { end(errTimeOver) })
	return ctx, &deadline{timer: t, left: d, since: time.Now()}, func() {
		t.Stop()
		end(nil)
	}
}

// pause stops the time until resume.
func (d *deadline) pause() {
	d.timer.Stop()
	d.left -= time.Since(d.since)
}

func (d *deadline) resume() {
	d.since = time.Now()
	d.timer.Reset(d.left)
}
