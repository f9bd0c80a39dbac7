// Command pgcluster starts one throwaway PostgreSQL cluster, runs a command with
// OSTIARY_TEST_POSTGRES set to its URL, stops the cluster and exits as the
// command did: pgcluster go test ./...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/ostiary-auth/ostiary/test/testkit/postgres"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgcluster:", err)
	}
	os.Exit(code)
}

func run(args []string) (int, error) {
	var o postgres.Options
	if len(args) > 0 && args[0] == "-durable" {
		o.Durable, args = true, args[1:]
	}
	if len(args) == 0 {
		return 2, errors.New("usage: pgcluster [-durable] COMMAND [ARGUMENT...]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := postgres.Start(ctx, o)
	if err != nil {
		return 1, err
	}
	defer c.Close()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "OSTIARY_TEST_POSTGRES="+c.URL())
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
