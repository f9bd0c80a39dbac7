package resourceserver

import (
	"context"
	"time"
)

// flight is one question about a token, for all requests that carry it. It ends
// with the last of them: who asks and hangs up holds nothing.
type flight struct {
	answer
	err  error
	done chan struct{} // closed when answer and err are there

	digest  digest
	waiting int // requests; with introspector.flying held
	cancel  context.CancelFunc
}

// answer is what one flight brings back.
type answer struct {
	token *Token
	until time.Time
}

// join returns the flight about d, begun with ask when there is none. Who joins
// leaves.
func (i *introspector) join(ctx context.Context, d digest, ask func(context.Context) (answer, error)) *flight {
	i.flying.Lock()
	defer i.flying.Unlock()
	f := i.flights[d]
	if f == nil {
		f = &flight{digest: d, done: make(chan struct{})}
		// The question outlives the request that caused it, while others wait for it.
		ctx, f.cancel = context.WithTimeout(context.WithoutCancel(ctx), introspectionTimeout)
		i.flights[d] = f
		go func() {
			f.answer, f.err = ask(ctx)
			i.land(f)
			close(f.done)
		}()
	}
	f.waiting++
	return f
}

// leave ends the flight when nobody waits for it any more.
func (i *introspector) leave(f *flight) {
	i.flying.Lock()
	defer i.flying.Unlock()
	if f.waiting--; f.waiting == 0 {
		i.remove(f)
		f.cancel()
	}
}

// land makes those who come from now on ask anew.
func (i *introspector) land(f *flight) {
	i.flying.Lock()
	defer i.flying.Unlock()
	i.remove(f)
}

func (i *introspector) remove(f *flight) {
	if i.flights[f.digest] == f {
		delete(i.flights, f.digest)
	}
}
