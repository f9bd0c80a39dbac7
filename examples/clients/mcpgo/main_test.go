package main

import (
	"testing"

	"github.com/ostiary-auth/ostiary/examples/internal/callertest"
)

func TestClient(t *testing.T) {
	t.Parallel()
	callertest.Run(t, run)
}
