// Package bench measures resourceserver beside other ways to verify an ES256
// access token in Go, each behind the official SDK's RequireBearerToken:
// jwx v2, coreos/go-oidc, and golang-jwt with keyfunc. It is a module of its own,
// so that their modules are in nobody's go.mod. test/bench.sh runs it.
package bench
