package registration

import (
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/singleflight"
)

// fly is DoChan whose fn may panic. fn reads what strangers wrote in a goroutine
// that is no request's: nobody else would recover, and one document could end the
// process.
func fly(g *singleflight.Group, key string, fn func() (any, error)) <-chan singleflight.Result {
	return g.DoChan(key, func() (v any, err error) {
		defer func() {
			if p := recover(); p != nil {
				v, err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		return fn()
	})
}
