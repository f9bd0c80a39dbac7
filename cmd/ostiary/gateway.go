package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/gateway"
	"github.com/ostiary-auth/ostiary/internal/obs"
	"github.com/ostiary-auth/ostiary/resourceserver"
)

// gatewayFlags are what `ostiary gateway` is told.
type gatewayFlags struct {
	resource, name, documentation        string
	issuers, scopes, required            []string
	upstream, operations, identity       string
	listen, adminListen, tlsCert, tlsKey string
	key, jwksFile                        string
	allowedOrigins, allowedHosts         []string
	removeHeaders                        []string
	prefix, metadataAtRoot, noLegacy     bool
	timeout                              time.Duration
	maxBody                              int64
	logFormat, logLevel                  string
	stdio                                stdioFlags
}

// stdioFlags are those of --stdio.
type stdioFlags struct {
	on                                 bool
	command                            []string
	maxChildren, maxChildrenPerSubject int
	idle                               time.Duration
	env                                []string
}

const gatewayLong = `Protect an MCP server in any language: requests come in here, and only those with
a good token go on to the server. It reads nothing of serve's: no database, no
configuration file, no secret.

  MCP client ── https ──> ostiary gateway ── http ──> your MCP server
                  │
                  └─ signs in at --issuer

Clients find the authorization server by themselves: the gateway answers 401 with
the place of its metadata document and serves that document beside --resource.
--resource is the URL that people give their MCP client, byte for byte, and what
the authorization server knows (ostiary resource add URL). Requests to exactly its
path go to exactly the URL of --upstream; nothing else is forwarded (--prefix).

The server learns who calls from a signed header, X-Ostiary-Identity (--identity):
a JWT good for a minute, verified with the keys at ADMIN-LISTEN/jwks.json. Whoever
reaches the server past the gateway needs no token: let it listen on 127.0.0.1 or
a unix socket. The token itself is never handed on, nor are cookies and headers
that a client could have forged; docs/gateway.md lists them.

Which scopes tools need stands in a file (--operations). Without it every good
token may do everything, unless --require-scope says what all of them need.

With --stdio the server is a program that speaks MCP on standard input and output;
one is started for each session of each person.

Every flag can be set as OSTIARY_GATEWAY_NAME instead, e.g.
OSTIARY_GATEWAY_RESOURCE; of a flag that may be repeated, commas separate values.`

const gatewayExample = `  ostiary gateway --upstream http://127.0.0.1:3000/mcp \
      --resource https://mcp.example.com/mcp --issuer https://auth.example.com

  # try it on this machine, with ostiary serve beside it
  ostiary gateway --upstream http://127.0.0.1:3000/mcp \
      --resource http://127.0.0.1:8416/mcp --issuer http://localhost:8414

  # scopes for each tool, and the server on a unix socket
  ostiary gateway --upstream unix:/run/notes.sock:/mcp --operations notes.yaml \
      --resource https://mcp.example.com/mcp --issuer https://auth.example.com

  # a program that speaks MCP on standard input and output
  ostiary gateway --resource https://mcp.example.com/mcp \
      --issuer https://auth.example.com --stdio -- npx -y some-mcp-server /srv/files`

func newGatewayCmd(c *cli) *cobra.Command {
	var f gatewayFlags
	cmd := &cobra.Command{Use: "gateway [flags] [-- COMMAND ARG…]", Short: "Protect an MCP server in any language",
		Long: gatewayLong, Example: gatewayExample, Args: cobra.ArbitraryArgs, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.complete(cmd, args, c.environ); err != nil {
				return err
			}
			return c.gateway(cmd.Context(), f)
		}}
	f.define(cmd.Flags())
	return cmd
}

// define declares the flags, the most needed first.
func (f *gatewayFlags) define(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.upstream, "upstream", "", "`URL` of the MCP endpoint, or unix:/socket, or unix:/socket:/path")
	fs.StringVar(&f.resource, "resource", "", "resource identifier: the `URL` that people give their MCP client")
	fs.StringArrayVar(&f.issuers, "issuer", nil, "issuer identifier, a `URL`, of the authorization server (repeatable; clients use the first)")
	fs.StringVar(&f.listen, "listen", "127.0.0.1:8416", "`address` to serve at")
	fs.StringArrayVar(&f.scopes, "scope", nil, "`scope` that clients should ask for at first (repeatable); not enforced")
	fs.StringArrayVar(&f.required, "require-scope", nil, "`scope` that every request needs (repeatable)")
	fs.StringVar(&f.operations, "operations", "", "`file` (YAML) of the scopes that tools need, and of issuers with options of their own")
	fs.StringVar(&f.identity, "identity", "jwt", "`how` the server learns who calls: jwt, headers (loopback and unix sockets only) or none")
	fs.StringVar(&f.key, "key", "", "`file` of the key that signs identities and seals session ids, made when missing; default: one for this process")
	fs.StringVar(&f.jwksFile, "jwks-file", "", "`file` to write the public keys of identities to")
	fs.StringVar(&f.adminListen, "admin-listen", "127.0.0.1:8417", "`address` of /healthz, /readyz and /jwks.json, or unix:/path")
	fs.StringVar(&f.tlsCert, "tls-cert", "", "certificate chain, a `file` (PEM), when no proxy in front speaks TLS")
	fs.StringVar(&f.tlsKey, "tls-key", "", "its private key, a `file` (PEM)")
	fs.DurationVar(&f.timeout, "timeout", 5*time.Minute, "how long the server may take to begin an answer; streams last longer")
	fs.Int64Var(&f.maxBody, "max-body", 4<<20, "largest request body, in `bytes`")
	fs.StringArrayVar(&f.removeHeaders, "remove-header", nil, "further request header, by `name`, that is not forwarded (repeatable): one that another proxy wrote")
	fs.BoolVar(&f.prefix, "prefix", false, "also forward what lies below the resource's path")
	fs.StringArrayVar(&f.allowedOrigins, "allowed-origin", nil, "`origin` of web pages that may call, or * (repeatable); default: any, loopback resources loopback")
	fs.StringArrayVar(&f.allowedHosts, "allowed-host", nil, "further `host` that requests may be for, also on the admin listener (repeatable)")
	fs.StringVar(&f.name, "name", "", "`name` of the MCP server for people")
	fs.StringVar(&f.documentation, "documentation", "", "`URL` of a page for developers")
	fs.BoolVar(&f.metadataAtRoot, "metadata-at-root", false, "serve the metadata document at the root well-known path too, for clients that look nowhere else")
	fs.BoolVar(&f.noLegacy, "no-legacy-metadata", false, "do not serve the authorization server's document here, for clients of MCP 2025-03-26")
	fs.BoolVar(&f.stdio.on, "stdio", false, "run COMMAND for each session instead of forwarding to --upstream")
	fs.IntVar(&f.stdio.maxChildren, "max-children", 32, "with --stdio: how many programs may run")
	fs.IntVar(&f.stdio.maxChildrenPerSubject, "max-children-per-subject", 0, "with --stdio: how many of them for one person (default 4, at most half of --max-children)")
	fs.DurationVar(&f.stdio.idle, "idle", 15*time.Minute, "with --stdio: how long a program may live without a request")
	fs.StringArrayVar(&f.stdio.env, "env", nil, "with --stdio: `NAME` of a variable that programs get besides PATH, HOME and the like (repeatable)")
	fs.StringVar(&f.logFormat, "log-format", "json", "`format` of the log: json or text")
	fs.StringVar(&f.logLevel, "log-level", "info", "`level` of the log: debug, info, warn or error")
	for _, name := range serveOnly {
		fs.String(name, "", "")
		_ = fs.MarkHidden(name) // it was just defined
	}
}

// serveOnly are flags of every other command.
var serveOnly = []string{"config", "database", "state-dir"}

// upstreamOnly and stdioOnly are flags that mean something to one kind of server.
var (
	upstreamOnly = []string{"identity", "jwks-file", "prefix", "remove-header", "timeout"}
	stdioOnly    = []string{"max-children", "max-children-per-subject", "idle", "env"}
)

// complete adds the environment and checks what belongs together.
func (f *gatewayFlags) complete(cmd *cobra.Command, args, environ []string) error {
	if err := gatewayEnvironment(cmd.LocalFlags(), environ); err != nil {
		return err
	}
	for _, name := range serveOnly {
		if cmd.Flags().Changed(name) {
			return withHint(usagef("--%s means nothing to the gateway, which has no database and no configuration file", name),
				"leave it out; --operations names the file of scopes and issuers")
		}
	}
	for _, name := range map[bool][]string{true: upstreamOnly, false: stdioOnly}[f.stdio.on] {
		if cmd.Flags().Changed(name) {
			return withHint(usagef("--%s means nothing %s --stdio", name, map[bool]string{true: "with", false: "without"}[f.stdio.on]), "leave it out")
		}
	}
	f.stdio.command = args
	switch {
	case f.resource == "":
		return withHint(usagef("--resource is missing"), "it is the URL that people give their MCP client: --resource https://mcp.example.com/mcp")
	case len(f.issuers) == 0 && f.operations == "":
		return withHint(usagef("--issuer is missing"), "it is the authorization server's URL: --issuer https://auth.example.com")
	case f.stdio.on && f.upstream != "":
		return withHint(usagef("--stdio and --upstream exclude one another"), "give one of them")
	case f.stdio.on && (len(args) == 0 || cmd.ArgsLenAtDash() != 0):
		return withHint(usagef("--stdio needs a command behind --"), "ostiary gateway … --stdio -- npx -y some-mcp-server")
	case !f.stdio.on && len(args) > 0:
		return withHint(usagef("ostiary gateway takes a command with --stdio only"), "ostiary gateway … --stdio -- COMMAND ARG…")
	case !f.stdio.on && f.upstream == "":
		return withHint(usagef("--upstream is missing"), "it is the MCP endpoint's whole URL: --upstream http://127.0.0.1:3000/mcp")
	case f.maxBody <= 0:
		return withHint(usagef("--max-body must be more than 0 bytes"), "leave it out for 4 MiB")
	case f.timeout <= 0 || f.stdio.idle <= 0:
		return withHint(usagef("--timeout and --idle must be more than 0"), "write a duration such as 30s or 5m")
	case (f.tlsCert == "") != (f.tlsKey == ""):
		return withHint(usagef("--tls-cert and --tls-key belong together"), "give both, or neither behind a proxy")
	}
	return nil
}

// gatewayPrefix begins the variables that stand for flags.
const gatewayPrefix = config.EnvPrefix + "GATEWAY_"

// gatewayEnvironment sets the flags that were not given. A misspelt variable is a
// mistake, but for those by which Kubernetes and Docker describe services.
func gatewayEnvironment(fs *pflag.FlagSet, environ []string) error {
	var errs []error
	for _, kv := range environ {
		variable, value, _ := strings.Cut(kv, "=")
		word, ours := strings.CutPrefix(variable, gatewayPrefix)
		if !ours || value == "" || isServiceVariable(word) {
			continue
		}
		name := strings.ReplaceAll(strings.ToLower(word), "_", "-")
		fl := fs.Lookup(name)
		switch {
		case fl == nil || fl.Hidden || name == "help" || strings.ToUpper(word) != word:
			errs = append(errs, usagef("%s: there is no such setting; ostiary gateway --help lists them", variable))
		case fl.Changed: // the command line wins
		default:
			errs = append(errs, setFromEnvironment(fl, variable, value))
		}
	}
	return errors.Join(errs...)
}

func setFromEnvironment(fl *pflag.Flag, variable, value string) error {
	values := []string{value}
	if list, ok := fl.Value.(pflag.SliceValue); ok {
		values = strings.Split(value, ",")
		for i := range values {
			values[i] = strings.TrimSpace(values[i])
		}
		return list.Replace(values)
	}
	if err := fl.Value.Set(values[0]); err != nil {
		return usagef("%s=%s: %v", variable, value, err)
	}
	return nil
}

// isServiceVariable reports what is set for a service named ostiary-gateway.
func isServiceVariable(word string) bool {
	return strings.HasPrefix(word, "SERVICE_") || word == "PORT" || strings.HasPrefix(word, "PORT_")
}

// options turns the flags into those of the gateway, which logs to w.
func (f *gatewayFlags) options(w io.Writer) (o gateway.Options, err error) {
	o = gateway.Options{RequiredScopes: f.required, Upstream: f.upstream, Prefix: f.prefix, RemoveHeaders: f.removeHeaders, Timeout: f.timeout, MaxBody: f.maxBody}
	rs := &o.ResourceServer
	*rs = resourceserver.Options{Resource: f.resource, Name: f.name, Documentation: f.documentation, Scopes: f.scopes,
		AllowedOrigins: f.allowedOrigins, AllowedHosts: f.allowedHosts, NoLegacyMetadata: f.noLegacy, MetadataAtRoot: f.metadataAtRoot}
	if rs.Scopes == nil {
		rs.Scopes = f.required
	}
	var errs []error
	if o.Identity, err = gateway.ParseIdentity(f.identity); err != nil {
		errs = append(errs, usagef("%v", err))
	}
	if f.operations != "" {
		errs = append(errs, gateway.ReadPolicy(f.operations, rs))
	}
	if len(f.issuers) > 0 && len(rs.Issuers) > 0 {
		errs = append(errs, fmt.Errorf("--issuer is given, and %s has issuers; keep one of them", f.operations))
	}
	for _, id := range f.issuers {
		rs.Issuers = append(rs.Issuers, resourceserver.Issuer{Identifier: id})
	}
	if f.key != "" {
		o.Key, err = readGatewayKey(f.key)
	} else {
		o.Key, err = gateway.NewKey()
	}
	errs = append(errs, err)
	if o.Log, err = obs.NewLogger(w, obs.LogOptions{Format: f.logFormat, Level: f.logLevel}); err != nil {
		errs = append(errs, usagef("%v", err))
	}
	return o, errors.Join(errs...)
}

func readGatewayKey(path string) (*gateway.Key, error) {
	if err := config.CheckPrivate(path); err != nil {
		return nil, err
	}
	return gateway.LoadKey(path)
}

// inFlagWords replaces the names that options have in Go.
var inFlagWords = strings.NewReplacer("resourceserver: ", "", "gateway: ", "", "Options.Issuers", "--issuer", "Options.Issuer", "--issuer",
	"Options.Resource", "--resource", "Options.AllowedHosts", "--allowed-host", "Options.AllowedOrigins", "--allowed-origin",
	"Options.FilterLists", "filter_lists", "Options.DefaultScopes", "default", "needs Operations", "needs a table of operations")

// newGateway builds the handler, and says what is wrong in the words of the flags.
func newGateway(o gateway.Options) (*gateway.Gateway, error) {
	g, err := gateway.New(o)
	if err == nil {
		return g, nil
	}
	lines := strings.Split(inFlagWords.Replace(err.Error()), "\n")
	return nil, usagef("%s", strings.Join(slices.Compact(lines), "\n"))
}
