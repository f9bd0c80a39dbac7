package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ostiary-auth/ostiary/internal/doctor"
)

const doctorLong = `Examine an MCP server and its authorization server, or an issuer alone, ours or
anybody's: every hop from the name in the DNS to a refused token, as the strictest
clients see it. What is wrong is printed with what was asked, what came, which
clients break on it, and what to change.

Nothing is made there: the requests are GET, HEAD, OPTIONS, and some that cannot
succeed, such as a made-up code at the token endpoint. With --write clients are
registered and your browser is opened to log in; what was made is revoked and
removed again, and the report says what could not be. A token of --token-stdin is
shown to the MCP server alone, and only when it is for it.

--as follows one client: what it asks, in its order, and where it stops; faults that
it does not notice do not count. Exit code: 0 nothing broken, 1 something broken, 2
wrong use.`

const doctorExample = `  ostiary doctor https://mcp.example.com/mcp
  ostiary doctor https://login.example.com --json
  ostiary doctor https://mcp.example.com/mcp --as claude-code
  ostiary doctor https://mcp.example.com/mcp --write
  ostiary doctor https://mcp.example.com/mcp --connect-to mcp.example.com:443:10.0.0.7:8443`

// doctorFlags are what `ostiary doctor` is told.
type doctorFlags struct {
	kind, as, metadataURL, caFile string
	write, noLogin, noBrowser     bool
	all                           bool
	allowPrivate                  bool
	tokenFromStdin                bool
	connectTo                     []string
}

func newDoctorCmd(c *cli) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{Use: "doctor URL", Short: "Examine an MCP server or an issuer as real clients do", Long: doctorLong, Example: doctorExample,
		Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error { return c.doctor(cmd, args[0], &f) }}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.as, "as", "", "examine as this `client` alone: "+strings.Join(doctor.ClientIDs(), ", "))
	fs.BoolVar(&f.write, "write", false, "register clients and log in, and take back what was made")
	fs.BoolVar(&f.noLogin, "no-login", false, "with --write: register, but do not log in")
	fs.BoolVar(&f.noBrowser, "no-browser", false, "with --write: print the address to open, on any machine, and read back where the browser ended")
	fs.BoolVar(&f.tokenFromStdin, "token-stdin", false, "read an access token for the MCP server from standard input")
	fs.StringVar(&f.kind, "kind", "", "`what` the URL is, server or issuer; by default it is asked")
	fs.StringVar(&f.metadataURL, "client-metadata-url", "", "`URL` of a Client ID Metadata Document to try; by default Claude Code's")
	fs.StringVar(&f.caFile, "ca", "", "`file` of certificates (PEM) to trust in place of the system's")
	fs.BoolVar(&f.allowPrivate, "allow-private", false, "let the servers name addresses in private networks")
	fs.StringArrayVar(&f.connectTo, "connect-to", nil, "`HOST1:PORT1:HOST2:PORT2` asks HOST2:PORT2 for HOST1:PORT1, as curl does (repeatable)")
	fs.BoolVar(&f.all, "all", false, "print what is fine and what was skipped too")
	addJSON(cmd)
	hideServeFlags(fs)
	fs.String("issuer", "", "")
	_ = fs.MarkHidden("issuer") // it was just defined
	return cmd
}

func (c *cli) doctor(cmd *cobra.Command, rawURL string, f *doctorFlags) error {
	o, err := c.doctorOptions(rawURL, f)
	if err != nil {
		return err
	}
	report, err := doctor.Examine(cmd.Context(), o)
	if err != nil {
		return err
	}
	var written error
	err = c.print(cmd, report, func(w io.Writer) {
		written = report.WriteText(w, doctor.TextOptions{Color: c.color(), All: f.all, Width: c.columns()})
	})
	if err = errors.Join(err, written); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	if cmd.Context().Err() != nil {
		return withHint(errors.New("interrupted: not everything was looked at"), "run it again")
	}
	if n := report.Broken(); n > 0 {
		return withHint(fmt.Errorf("broken: %s", findings(n)), "change what the first one says, and examine again: one fault may hide others")
	}
	return nil
}

func findings(n int) string {
	if n == 1 {
		return "1 finding"
	}
	return fmt.Sprint(n, " findings")
}

// doctorOptions reads the flags; every mistake in them is wrong use.
func (c *cli) doctorOptions(rawURL string, f *doctorFlags) (doctor.Options, error) {
	o := doctor.Options{URL: rawURL, Kind: doctor.Kind(f.kind), As: f.as, Write: f.write, ClientMetadataURL: f.metadataURL,
		AllowPrivate: f.allowPrivate, Now: c.now}
	if err := o.Validate(); err != nil {
		return o, withHint(usagef("%s", err), "ostiary doctor https://mcp.example.com/mcp")
	}
	var err error
	if o.RootCAs, err = rootCAs(f.caFile); err != nil {
		return o, err
	}
	if o.ConnectTo, err = connectTo(f.connectTo); err != nil {
		return o, err
	}
	switch {
	case f.tokenFromStdin && f.write:
		return o, withHint(usagef("--token-stdin and --write exclude one another"), "give one of them: --write gets a token of its own")
	case (f.noBrowser || f.noLogin) && !f.write:
		return o, withHint(usagef("--no-browser and --no-login go with --write"), "leave it out: nobody logs in without --write")
	case f.tokenFromStdin:
		o.Token, err = c.readSecretLine(c.in, "token")
	case f.write && !f.noLogin:
		o.Begin = c.begin(f.noBrowser)
	}
	return o, err
}

// begin has the person log in as ostiary login does.
func (c *cli) begin(noBrowser bool) func(ctx context.Context) (doctor.Attempt, error) {
	authorizer := c.authorizer(&callerFlags{noBrowser: noBrowser})
	return func(ctx context.Context) (doctor.Attempt, error) { return authorizer.Begin(ctx) }
}

func rootCAs(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, withHint(usagef("--ca: %s", err), "name a file of certificates (PEM)")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, withHint(usagef("--ca: %s holds no certificate", file), "name a file of certificates (PEM)")
	}
	return pool, nil
}

// connectTo reads curl's HOST1:PORT1:HOST2:PORT2; an IPv6 address stands in
// brackets.
func connectTo(list []string) (map[string]string, error) {
	m := map[string]string{}
	for _, raw := range list {
		parts := splitColons(raw)
		if len(parts) != 4 || slices.Contains(parts, "") {
			return nil, withHint(usagef("--connect-to %q is not HOST1:PORT1:HOST2:PORT2", raw), "--connect-to mcp.example.com:443:127.0.0.1:8443")
		}
		unbracket := strings.NewReplacer("[", "", "]", "")
		m[net.JoinHostPort(strings.ToLower(unbracket.Replace(parts[0])), parts[1])] = net.JoinHostPort(unbracket.Replace(parts[2]), parts[3])
	}
	return m, nil
}

// splitColons splits at the colons outside brackets.
func splitColons(s string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
		return r == ':' && depth == 0
	})
}

// color reports whether results may be in colour: on a terminal, unless NO_COLOR
// (no-color.org) is set or the terminal has none.
func (c *cli) color() bool {
	f, isFile := c.out.(*os.File)
	return isFile && term.IsTerminal(int(f.Fd())) && c.environment("NO_COLOR") == "" && c.environment("TERM") != "dumb"
}

// columns is how wide the terminal is that results go to, 0 when they go elsewhere.
func (c *cli) columns() int {
	f, isFile := c.out.(*os.File)
	if !isFile {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0 // no terminal
	}
	return width
}

// environment is a variable of the environment, "" when it is not there.
func (c *cli) environment(name string) string {
	for _, kv := range c.environ {
		if value, found := strings.CutPrefix(kv, name+"="); found {
			return value
		}
	}
	return ""
}
