package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// explained says what arguments a verb takes where cobra counts them. It does not
// repeat one that is too many: it may be a password (D18).
func explained(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		err := check(cmd, args)
		if err == nil || cmd.HasSubCommands() {
			return err
		}
		want := strings.Fields(cmd.Use)[1:]
		switch {
		case len(args) < len(want):
			err = usagef("%s is missing", strings.Join(want[len(args):], " and "))
		case len(want) == 0:
			err = usagef("%s takes no argument", cmd.CommandPath())
		default:
			err = usagef("%s takes only %s", cmd.CommandPath(), strings.Join(want, " and "))
		}
		return withHint(err, "%s", usageLine(cmd))
	}
}

// usageLine is the example to copy, else the form of the command.
func usageLine(cmd *cobra.Command) string {
	if first, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n"); first != "" {
		return strings.TrimSuffix(first, " \\")
	}
	return cmd.UseLine()
}

// unknownCommand refuses arguments of a noun: they are no verb of it.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := usagef("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return withHint(err, "did you mean %s %s?", cmd.CommandPath(), near[0])
	}
	return withHint(err, "%s --help lists the commands", cmd.CommandPath())
}

// exclusive is what cobra says of flags that exclude one another.
var exclusive = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(\S+) (\S+).*\] were all set$`)

// explainedGroup says the same in words.
func explainedGroup(err error) error {
	if m := exclusive.FindStringSubmatch(err.Error()); m != nil {
		return withHint(usagef("--%s and --%s exclude one another", m[1], m[2]), "give one of them")
	}
	return err
}

// flagError adds to an unknown or broken flag the one that is meant.
func flagError(cmd *cobra.Command, err error) error {
	hint := cmd.CommandPath() + " --help lists the flags"
	var word string
	if _, scanErr := fmt.Sscanf(err.Error(), "unknown flag: --%s", &word); scanErr == nil {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if strings.HasPrefix(f.Name, word) || strings.HasPrefix(word, f.Name) {
				hint = "did you mean --" + f.Name + "?"
			}
		})
	}
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	if errors.As(err, &invalid) && errors.As(err, &number) {
		err = fmt.Errorf("--%s does not take %q: %w", invalid.GetFlag().Name, invalid.GetValue(), number.Err)
	}
	return withHint(err, "%s", hint)
}
