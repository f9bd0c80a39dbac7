package main

import (
	"log/slog"

	"github.com/ostiary-auth/ostiary/internal/gateway/stdio"
)

// newBridge makes what stands in the upstream's place with --stdio.
func newBridge(f gatewayFlags, log *slog.Logger) (bridge, error) {
	return stdio.New(stdio.Options{Command: f.stdio.command, Env: f.stdio.env, MaxChildren: f.stdio.maxChildren,
		MaxPerSubject: f.stdio.maxChildrenPerSubject, Idle: f.stdio.idle, MaxMessage: f.maxBody, Log: log})
}
