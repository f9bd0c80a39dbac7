package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ostiary": main})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: "testdata"})
}

// D2: a child process inherits none of our variables.
func TestD02_Forget(t *testing.T) {
	t.Setenv("OSTIARY_SECRET", "hunter2")
	t.Setenv("NOT_OSTIARY", "stays")
	forget(os.Environ())
	if _, ok := os.LookupEnv("OSTIARY_SECRET"); ok {
		t.Error("OSTIARY_SECRET is still set")
	}
	if os.Getenv("NOT_OSTIARY") != "stays" {
		t.Error("another variable was unset")
	}
}
