package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write docs/cli.md")

const reference = "../../docs/cli.md"

const referenceHead = `# Command line

Made from the commands in cmd/ostiary by ` + "`make docs`" + `: edit their texts there. ` + "`ostiary VERB --help`" + ` prints the same.

Results go to standard output, with ` + "`--json`" + ` as JSON; everything else goes to standard error, with a line
` + "`hint:`" + ` that says what to do next. Exit code: 0 done; 2 wrong use, which is an unknown command, a missing argument or
flag, or a value that can never be right; 1 for everything else, such as what the database, the configuration or the
input do not admit. Passwords and secrets are read from a prompt, standard input or a file, never from the command line,
which other people of the machine can see.

The commands open the same database as ` + "`ostiary serve`" + ` with the same configuration, and work while it runs. They are
run as the user that owns the database. Not so ` + "`gateway`, `login`, `logout`, `call` and `doctor`" + `: they read nothing of
serve's, and the last four are for anybody's servers. Flags of every command, which stand for settings of
[configuration.md](configuration.md):

`

// docs/cli.md says what the commands say of themselves.
func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	root := newRootCmd(newCLI(nil, strings.NewReader(""), io.Discard, io.Discard))
	want := referenceHead + block(root.PersistentFlags().FlagUsages())
	for _, cmd := range root.Commands() {
		want += describe(t, cmd)
	}
	if *update {
		if err := os.WriteFile(reference, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/cli.md is not current; run make docs (-want +got):\n%s", diff)
	}
}

// describe is the section of a verb, or those of a noun's verbs.
func describe(t *testing.T, cmd *cobra.Command) string {
	t.Helper()
	if cmd.Hidden || slices.Contains([]string{"help", "completion"}, cmd.Name()) {
		return ""
	}
	if cmd.Short == "" {
		t.Errorf("%s says nothing of itself", cmd.CommandPath())
	}
	if cmd.HasSubCommands() {
		var verbs strings.Builder
		for _, verb := range cmd.Commands() {
			verbs.WriteString(describe(t, verb))
		}
		return verbs.String()
	}
	text := cmd.Short + "."
	if cmd.Long != "" {
		text = cmd.Long
	}
	usage := cmd.UseLine()
	if cmd.Example != "" {
		usage += "\n\n" + cmd.Example
	}
	if flags := cmd.NonInheritedFlags().FlagUsages(); flags != "" {
		usage += "\n\n" + flags
	}
	return fmt.Sprintf("\n## %s\n\n%s\n\n%s", cmd.CommandPath(), text, block(usage))
}

func block(text string) string { return "```\n" + strings.TrimRight(text, "\n") + "\n```\n" }
