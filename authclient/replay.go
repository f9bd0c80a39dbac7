package authclient

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// replay is a request's body, as often as it is needed.
type replay struct {
	first io.ReadCloser
	get   func() (io.ReadCloser, error) // nil: there is only the first
}

// newReplay uses GetBody, or keeps what is small enough.
func newReplay(req *http.Request) (*replay, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return &replay{get: func() (io.ReadCloser, error) { return http.NoBody, nil }}, nil
	}
	if req.GetBody != nil {
		return &replay{first: req.Body, get: req.GetBody}, nil
	}
	head, err := io.ReadAll(io.LimitReader(req.Body, maxReplay+1))
	if err != nil {
		_ = req.Body.Close()
		return nil, fmt.Errorf("read the request's body: %w", err)
	}
	if len(head) > maxReplay {
		return &replay{first: joined{io.MultiReader(bytes.NewReader(head), req.Body), req.Body}}, nil
	}
	_ = req.Body.Close()
	return &replay{get: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(head)), nil }}, nil
}

// joined reads from one and closes the other.
type joined struct {
	io.Reader
	io.Closer
}

// next returns the body; the transport closes it.
func (r *replay) next() (io.ReadCloser, error) {
	if b := r.first; b != nil {
		r.first = nil
		return b, nil
	}
	if r.get == nil {
		return nil, ErrBodyGone
	}
	return r.get()
}

// again reports whether next has a body still.
func (r *replay) again() bool { return r.first != nil || r.get != nil }

// close closes a body that was never sent.
func (r *replay) close() {
	if r.first != nil {
		_ = r.first.Close()
	}
}
