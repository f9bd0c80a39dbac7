// Command ostiary is an OAuth 2.1 authorization server for the Model Context
// Protocol. This package parses, calls and prints; every rule stands in the
// packages it calls.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/printable"
	"github.com/spf13/cobra"
)

// Exit codes: scripts tell a refused request from a misspelt one.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// commands lists the verbs: one constructor a noun, in the order of the help.
func commands(c *cli) []*cobra.Command {
	return []*cobra.Command{
		newServeCmd(c),
		newGatewayCmd(c),
		newLoginCmd(c),
		newLogoutCmd(c),
		newCallCmd(c),
		newDoctorCmd(c),
		newResourceCmd(c),
		newClientCmd(c),
		newKeyCmd(c),
		newConfigCmd(c),
		newMigrateCmd(c),
		newUserCmd(c),
		newGrantCmd(c),
		newTokenCmd(c),
		newSetupLinkCmd(c),
		newVersionCmd(c),
	}
}

func main() {
	syscall.Umask(0o077) // D2: what we make is for this user alone
	environ := os.Environ()
	forget(environ)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	c := newCLI(environ, os.Stdin, os.Stdout, os.Stderr)
	code := c.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// forget unsets our variables, so that no child process inherits a secret (D2).
func forget(environ []string) {
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, config.EnvPrefix) {
			_ = os.Unsetenv(name) // fails for no name that came from the environment
		}
	}
}

// run executes one command line and returns the exit code.
func (c *cli) run(ctx context.Context, args []string) int {
	root := newRootCmd(c)
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	report(c.err, cmd.CommandPath(), explainedGroup(err))
	var usage *usageError
	if !c.running || errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

func newRootCmd(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:   "ostiary",
		Short: "An OAuth 2.1 authorization server for the Model Context Protocol",
		Long: `Ostiary signs people in, asks them which app may use which MCP server, and
issues tokens that open exactly that server.

Try it:  ostiary serve`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.Version = readBuild().Version
	root.SetVersionTemplate(readBuild().line())
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().StringVar(&c.configFile, "config", "", "configuration `file` (YAML)")
	c.settings(root.PersistentFlags(), globalSettings)
	root.AddCommand(commands(c)...)
	c.watch(root)
	return root
}

// watch marks the moment at which a verb begins: an error before it is wrong
// use, whatever cobra calls it. A noun without a verb shows its verbs.
func (c *cli) watch(cmd *cobra.Command) {
	if cmd.RunE == nil && cmd.HasSubCommands() {
		cmd.Args = unknownCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	cmd.Args = explained(cmd.Args)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.running = true
		return run(cmd, args)
	}
	for _, sub := range cmd.Commands() {
		c.watch(sub)
	}
}

// usageError is a mistake in the command line.
type usageError struct{ text string }

// Error returns the text.
func (e *usageError) Error() string { return e.text }

// usagef reports wrong use: exit code 2.
func usagef(format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

// hintedError is an error with a line about what to do next.
type hintedError struct {
	error
	hint string
}

// Unwrap returns the error itself.
func (e *hintedError) Unwrap() error { return e.error }

// Hint returns the line.
func (e *hintedError) Hint() string { return e.hint }

// withHint adds what to do next to err; a nil err stays nil.
func withHint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &hintedError{error: err, hint: fmt.Sprintf(format, args...)}
}

// report writes an error for people: each line after our name, then a hint, which
// is never missing.
func report(w io.Writer, command string, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		_, _ = fmt.Fprintln(w, "ostiary:", printable.Text(line))
	}
	var hinted interface{ Hint() string }
	var mistakes config.Mistakes
	switch {
	case errors.As(err, &hinted):
		_, _ = fmt.Fprintln(w, "hint:", printable.Text(hinted.Hint()))
	case errors.As(err, &mistakes):
		_, _ = fmt.Fprintln(w, "hint: ostiary config print shows each value and where it came from; docs/configuration.md tells what they mean")
	default:
		_, _ = fmt.Fprintf(w, "hint: %s --help tells what it does and needs\n", command)
	}
}
