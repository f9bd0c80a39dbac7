package doctor

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The time of an examination stands still while a person is asked.
func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, d, stop := withDeadline(t.Context(), totalTimeout)
		defer stop()
		time.Sleep(time.Minute)
		d.pause()
		time.Sleep(time.Hour)
		d.resume()
		time.Sleep(totalTimeout - time.Minute - time.Second)
		if ctx.Err() != nil {
			t.Fatalf("it ended early: %v", context.Cause(ctx))
		}
		time.Sleep(2 * time.Second)
		if !errors.Is(context.Cause(ctx), errTimeOver) {
			t.Errorf("after its time: %v", context.Cause(ctx))
		}
	})
}

// C9: one context bounds the run: a check that waits for a server is ended, and
// says nothing of it; nor do those after it.
func TestC09_TimeIsOver(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	u, _ := counting(t, func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-release
	})
	t.Cleanup(func() { close(release) }) // before the server is closed
	x := examinationOf(t, Options{URL: u})
	ctx, end := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		end(errTimeOver)
	}()
	waits := Check{ID: "waits", Run: func(ctx context.Context, x *examination) Outcome {
		return broken("%s", plainError(x.probe.send(ctx, get(u)).err))
	}}
	for range 2 {
		if f := x.run(ctx, waits); f.State != Skipped || !strings.Contains(f.Why, "time of the examination") {
			t.Errorf("%+v", f)
		}
	}
}

// What was made is taken back when the time is over, or somebody has interrupted.
func TestCleanUpHasItsOwnTime(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for name, cause := range map[string]error{"time": errTimeOver, "interrupted": context.Canceled} {
		x := examinationOf(t, Options{URL: f.URL + "/mcp"})
		x.issuerDoc = parseDocument([]byte(`{"revocation_endpoint":"` + f.URL + `/revoke"}`))
		x.issued.clientID, x.issued.refresh = "a-client", "refresh-token-of-the-run"
		ctx, end := context.WithCancelCause(t.Context())
		end(cause)
		f.revoked = nil
		x.cleanUp(ctx)
		if len(f.revoked) != 1 || f.revoked[0] != "refresh-token-of-the-run" || len(x.left) > 0 {
			t.Errorf("%s: revoked %q, left %q", name, f.revoked, x.left)
		}
	}
}
