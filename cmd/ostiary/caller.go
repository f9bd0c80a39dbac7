package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/printable"
)

// callerFlags are those of the commands that stand on the other side: clients of an
// MCP server, which may be anybody's.
type callerFlags struct {
	account, store        string
	clientID, issuer      string
	secretFromStdin       bool
	metadataURL           string
	scopes                []string
	device, noBrowser     bool
	callbackPort          uint16
	issuerSlash           bool
	allowPrivate, verbose bool
}

// define declares what every one of the commands takes.
func (f *callerFlags) define(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.account, "account", "", "`name` for this login, to keep several at one server apart")
	fs.StringVar(&f.store, "store", storeFile, "`where` logins are kept: file, keyring or memory, which ends with the command")
	fs.StringVar(&f.clientID, "client-id", "", "`client_id` that the authorization server of --issuer knows")
	fs.StringVar(&f.issuer, "issuer", "", "issuer identifier, a `URL`: the one authorization server that --client-id and its secret are sent to")
	fs.BoolVar(&f.secretFromStdin, "client-secret-stdin", false, "read the secret of --client-id from standard input")
	fs.StringVar(&f.metadataURL, "client-metadata-url", "", "`URL` of a Client ID Metadata Document, used where the server reads them")
	fs.BoolVar(&f.issuerSlash, "issuer-slash", false, "accept an authorization server that spells its issuer with a slash more or less at the end")
	fs.BoolVar(&f.allowPrivate, "allow-private", false, "let the server name addresses in private networks")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "say what is asked and decided")
	hideServeFlags(fs)
}

// defineAsking declares what commands take that ask a person.
func (f *callerFlags) defineAsking(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.scopes, "scope", nil, "`scope` to ask for besides what the server asks for (repeatable)")
	fs.BoolVar(&f.noBrowser, "no-browser", false, "print the address to open, on any machine, and read back where the browser ended")
	fs.BoolVar(&f.device, "device", false, "show a code to type on another machine, where the authorization server can")
	fs.Uint16Var(&f.callbackPort, "callback-port", 0, "`port` the browser comes back to, for a client registered with http://127.0.0.1:PORT/callback; default: any")
}

// hideServeFlags takes the place of the flags that stand for settings of serve.
func hideServeFlags(fs *pflag.FlagSet) {
	for _, name := range serveOnly {
		fs.String(name, "", "")
		_ = fs.MarkHidden(name) // it was just defined
	}
}

// check refuses what does not go together.
func (f *callerFlags) check(cmd *cobra.Command) error {
	for _, name := range serveOnly {
		if cmd.Flags().Changed(name) {
			return withHint(usagef("--%s means nothing to %s, which has no database and no configuration file", name, cmd.CommandPath()), "leave it out")
		}
	}
	switch {
	case f.clientID != "" && f.issuer == "":
		return withHint(usagef("--client-id needs --issuer: it is sent to the authorization server that knows it, and to no other"),
			"--issuer https://auth.example.com; ostiary doctor MCP_URL shows the issuer")
	case f.clientID == "" && f.issuer != "":
		return withHint(usagef("--issuer says whose --client-id is"), "give both, or neither")
	case f.clientID == "" && f.secretFromStdin:
		return withHint(usagef("--client-secret-stdin is the secret of --client-id, which is missing"), "--client-id ID --issuer URL --client-secret-stdin")
	case f.clientID != "" && f.metadataURL != "":
		return withHint(usagef("--client-id and --client-metadata-url exclude one another"), "give one of them")
	case f.device && f.noBrowser:
		return withHint(usagef("--device and --no-browser exclude one another"), "give one of them")
	case f.callbackPort != 0 && (f.device || f.noBrowser):
		return withHint(usagef("--callback-port is for a browser on this machine"), "leave it out")
	case f.secretFromStdin && f.noBrowser:
		return withHint(usagef("--client-secret-stdin and --no-browser both read standard input"), "--device needs no answer from you")
	}
	return nil
}

// caller is a client of one MCP server, as a command was told.
type caller struct {
	*authclient.Client
	server string
	place  string // where its logins are kept, in words
}

// newCaller makes a client that asks the person by authorizer, nil for nobody.
func (c *cli) newCaller(cmd *cobra.Command, server string, f *callerFlags, authorizer authclient.Authorizer) (*caller, error) {
	if err := f.check(cmd); err != nil {
		return nil, err
	}
	store, place, err := c.loginStore(f.store)
	if err != nil {
		return nil, err
	}
	o := authclient.Options{Server: server, ClientMetadataURL: f.metadataURL, Authorizer: authorizer, Store: store, Account: f.account,
		Scopes: splitScopes(f.scopes), AllowPrivate: f.allowPrivate, TolerateIssuerSlash: f.issuerSlash, Now: c.now,
		Metadata: authclient.ClientMetadata{ClientName: "Ostiary command line", ClientURI: "https://github.com/ostiary-auth/ostiary",
			SoftwareID: "ostiary", SoftwareVersion: readBuild().Version}}
	if f.verbose {
		o.Log = slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if f.clientID != "" {
		secret, err := c.clientSecret(f)
		if err != nil {
			return nil, err
		}
		o.Registered = []authclient.RegisteredClient{{Issuer: f.issuer, ClientID: f.clientID, ClientSecret: secret}}
		o.NoDynamicRegistration = true // who names a client wants no other
	}
	client, err := authclient.New(o)
	if err != nil {
		return nil, inCallerWords(err, server)
	}
	return &caller{Client: client, server: server, place: place}, nil
}

func (c *cli) clientSecret(f *callerFlags) (oauth.Secret, error) {
	if !f.secretFromStdin {
		return "", nil
	}
	return c.readSecret("client secret", "--client-secret-stdin", true)
}

// splitScopes lets --scope take several at once, as they stand in documents.
func splitScopes(given []string) []string { return strings.Fields(strings.Join(given, " ")) }

// callerWords replaces the names that options have in Go.
var callerWords = strings.NewReplacer("authclient: ", "", "refused for safety: ", "", "issuer of a registered client", "--issuer",
	"ClientMetadataURL", "--client-metadata-url", "Server", "MCP_URL")

// inCallerWords says what is wrong with the command line.
func inCallerWords(err error, server string) error {
	hint := "the command's --help says what each flag takes"
	switch {
	case strings.Contains(err.Error(), "the Server "):
		hint = "https://mcp.example.com/mcp, as people give it to their MCP client"
	case strings.Contains(err.Error(), "is not a scope"):
		hint = "scopes are words as the server lists them, such as notes:read"
	}
	if !strings.Contains(server, ":") {
		hint = "write the whole address: https://" + server
	}
	return withHint(usagef("%s", callerWords.Replace(err.Error())), "%s", hint)
}

// authorizer is how this command asks the person.
func (c *cli) authorizer(f *callerFlags) authclient.Authorizer {
	switch {
	case f.device:
		return &authclient.Device{Show: c.showDeviceCode}
	case f.noBrowser:
		return &authclient.Paste{In: c.in, Out: c.err}
	}
	return &authclient.Loopback{Open: c.openBrowser, Port: f.callbackPort, Notify: func(authorizationURL string) {
		_, _ = fmt.Fprintf(c.err, "Your browser opens to ask you. If it does not, open this address on this machine, or\nstart again with --no-browser to use another one:\n\n  %s\n\n",
			printable.Whole(authorizationURL))
	}}
}

func (c *cli) showDeviceCode(_ context.Context, code authclient.DeviceCode) error {
	_, _ = fmt.Fprintf(c.err, "To log in at %s, open on any machine\n\n  %s\n\nand type the code  %s\n",
		terminalLine(code.Issuer), printable.Whole(code.VerificationURI), terminalLine(code.UserCode))
	if code.VerificationURIComplete != "" {
		_, _ = fmt.Fprintf(c.err, "\nor open the address that holds it:\n\n  %s\n", printable.Whole(code.VerificationURIComplete))
	}
	if code.OtherHost {
		_, _ = fmt.Fprint(c.err, "\nThat address is on another host than the authorization server. Go on only if you know that they belong\ntogether: otherwise you may let somebody else into your account there.\n")
	}
	if left := code.Expires.Sub(c.now()); left > 0 {
		_, _ = fmt.Fprintf(c.err, "\nThe code is good for %s.\n", roughly(left))
	}
	return nil
}

// explain adds to an error of the client library what to do next.
func (f *callerFlags) explain(err error, server string) error {
	var answer *authclient.ServerError
	var hinted *hintedError
	switch {
	case err == nil, errors.As(err, &hinted):
		return err
	case errors.Is(err, context.Canceled):
		return withHint(errors.New("interrupted before it was done"), "run it again")
	case errors.Is(err, authclient.ErrLoginRequired):
		return withHint(err, "ostiary login %s", server)
	case errors.Is(err, authclient.ErrNotProtected):
		return withHint(err, "there is nothing to log in to; ostiary call %s lists its tools", server)
	case errors.Is(err, authclient.ErrDenied):
		return withHint(err, "run it again to be asked again")
	case errors.Is(err, authclient.ErrNoAnswer), f.noBrowser && errors.Is(err, io.EOF):
		return withHint(err, "run it again; --no-browser is for a machine that has no browser, and waits for what you paste")
	case errors.Is(err, authclient.ErrNoDeviceGrant):
		return withHint(err, "leave --device out; --no-browser works with every server")
	case errors.Is(err, authclient.ErrCannotRegister) && f.clientID != "":
		return withHint(err, "--client-id is sent to %s alone, which is another one", f.issuer)
	case errors.Is(err, authclient.ErrCannotRegister):
		return withHint(err, "ask who runs it for a client, and add --client-id ID --issuer URL")
	case errors.Is(err, authclient.ErrPrivateAddress):
		return withHint(err, "--allow-private lets the server name addresses of your network, if you know that it may")
	case errors.Is(err, authclient.ErrIssuerSlash):
		return withHint(err, "--issuer-slash accepts it; who runs the server should spell its issuer in one way")
	case errors.Is(err, authclient.ErrRefused):
		return withHint(err, "nothing was sent there; ostiary doctor %s looks at each step and says what to change", server)
	case errors.As(err, &answer) && answer.Code == "invalid_client" && f.clientID != "" && !f.secretFromStdin:
		return withHint(err, "if the client has a secret, give it with --client-secret-stdin")
	case errors.As(err, &answer) && answer.Temporary():
		return withHint(err, "try again later; what is stored stays")
	}
	return withHint(err, "ostiary doctor %s looks at each step; --verbose says what was asked", server)
}
