package main

import (
	"errors"
	"log/slog"
	"os/exec"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/gateway/stdio"
)

// newBridge makes what stands in the upstream's place with --stdio.
func newBridge(f gatewayFlags, log *slog.Logger) (bridge, error) {
	b, err := stdio.New(stdio.Options{Command: f.stdio.command, Env: f.stdio.env, MaxChildren: f.stdio.maxChildren,
		MaxPerSubject: f.stdio.maxChildrenPerSubject, Idle: f.stdio.idle, MaxMessage: f.maxBody, Log: log})
	if err != nil {
		text := inStdioFlagWords.Replace(err.Error())
		if errors.Is(err, exec.ErrNotFound) {
			return nil, errors.New(text) // it was not used wrongly; something is not installed
		}
		return nil, usagef("%s", text)
	}
	return b, nil
}

// inStdioFlagWords replaces the names that its options have in Go.
var inStdioFlagWords = strings.NewReplacer("stdio: ", "", "MaxPerSubject", "--max-children-per-subject", "MaxChildren", "--max-children",
	"Options.Env", "--env", "Options.Command: ", "", "Idle", "--idle", "MaxMessage", "--max-body")
