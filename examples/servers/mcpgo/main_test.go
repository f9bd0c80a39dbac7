package main

import (
	"testing"

	"github.com/ostiary-auth/ostiary/examples/internal/notestest"
)

func TestServer(t *testing.T) {
	t.Parallel()
	notestest.Run(t, newHandler, notestest.Version202506, notestest.Version202511, notestest.Version202607)
}

func TestStream(t *testing.T) {
	t.Parallel()
	notestest.RunStream(t, newHandler)
}
