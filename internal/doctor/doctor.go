// Package doctor examines a running set-up from outside, as the clients that
// people use meet it: an MCP server and its authorization server, or an
// authorization server alone, ours or anybody's. It walks from the name in the DNS
// to a refused (or, when it may, an issued) token, and says for each hop what was
// asked, what came, which clients break on it and what to change. It owns the
// checks, the table of clients (clients.json) and the report; commands print it.
//
// It sends GET, HEAD, OPTIONS and requests that cannot succeed, unless Options.Write
// lets it register; then it takes back what it made. Its checks are those of RFC
// 6749, 6750, 7009, 7517, 7591, 7592, 8414, 8707, 9068, 9207, 9728 and of the MCP
// specification.
package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Kind is what a URL is.
type Kind string

// The kinds.
const (
	KindServer Kind = "server"
	KindIssuer Kind = "issuer"
)

// Options configures Examine. The zero value of every optional field is the safe
// default.
type Options struct {
	// URL is the MCP server's URL as people type it, or an issuer. Required.
	URL string
	// Kind says which of both it is. Default: what it answers tells.
	Kind Kind
	// As is the id of a client whose order and strictness count. Default: all of
	// them, the strictest at each hop.
	As string
	// Write lets the examination register clients, log in when Begin is set, and
	// refresh; it revokes and unregisters what it made.
	Write bool
	// Begin prepares bringing a person to the authorization endpoint, as
	// authclient.Authorizer does. Nil: nobody logs in.
	Begin func(ctx context.Context) (Attempt, error)
	// Token is an access token for the MCP server. It is shown to that server alone.
	Token oauth.Secret
	// ClientMetadataURL is a Client ID Metadata Document that the authorization
	// server can read. Default: the one of Claude Code.
	ClientMetadataURL string
	// AllowPrivate lets servers name addresses in private networks, which are then
	// asked. Without it they may where URL is such an address itself, as written; a
	// URL on a loopback host may lead to this machine.
	AllowPrivate bool
	// RootCAs are trusted in place of the system's.
	RootCAs *x509.CertPool
	// ConnectTo maps host:port to the host:port that is asked instead, for a set-up
	// that the DNS does not lead to yet.
	ConnectTo map[string]string
	// Resolver looks names up. Default: the system's.
	Resolver Resolver
	// Now is the clock that the server's Date is compared with. Default time.Now.
	Now func() time.Time
}

// Attempt is one authorization by a person; an authclient.Attempt is one.
type Attempt interface {
	// RedirectURI is where the authorization server sends the browser back.
	RedirectURI() string
	// Authorize shows the URL and returns the parameters of the response.
	Authorize(ctx context.Context, authorizationURL string) (url.Values, error)
	// Close ends the attempt, whatever became of it.
	Close() error
}

// Report is what an examination found.
type Report struct {
	URL    string `json:"url"`
	Kind   Kind   `json:"kind"`
	Issuer string `json:"issuer,omitempty"`
	// As names the client of Options.As.
	As string `json:"as,omitempty"`
	// Replay is what that client does, step by step.
	Replay   []Step        `json:"replay,omitempty"`
	Findings []Finding     `json:"findings"`
	Counts   map[State]int `json:"counts"`
	Requests int           `json:"requests"`
	// Left names what could not be taken back.
	Left []string `json:"left,omitempty"`
}

// Broken counts the findings on which the clients asked about cannot go on; one
// that stops in its replay is one at least.
func (r *Report) Broken() int {
	if n := len(r.Replay); n > 0 && r.Replay[n-1].State == Broken {
		return max(r.Counts[Broken], 1)
	}
	return r.Counts[Broken]
}

// errURL tells what is expected.
var errURL = errors.New("the URL of an MCP server or an issuer is needed, such as https://mcp.example.com/mcp")

// parseTarget reads the URL that the operator named.
func parseTarget(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errURL, err)
	}
	if err := webURL(u); err != nil {
		return nil, fmt.Errorf("%w: %w", errURL, err)
	}
	if u.Fragment != "" || strings.Contains(raw, "#") {
		return nil, fmt.Errorf("%w: a fragment never reaches a server", errURL)
	}
	return u, nil
}

// Validate tells what is wrong with the options; Examine looks at them too.
func (o *Options) Validate() error {
	_, err := parseTarget(o.URL)
	if o.Kind != "" && o.Kind != KindServer && o.Kind != KindIssuer {
		err = errors.Join(err, fmt.Errorf("kind %q is neither %s nor %s", o.Kind, KindServer, KindIssuer))
	}
	if o.As != "" {
		if _, known := knowledge().Client(o.As); !known {
			err = errors.Join(err, fmt.Errorf("no client is called %q; known are %s", o.As, strings.Join(ClientIDs(), ", ")))
		}
	}
	return err
}

// Examine looks at every hop. The error is about the options: whatever a server
// does wrong stands in the report.
func Examine(ctx context.Context, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	x := newExamination(o)
	ctx, d, stop := withDeadline(ctx, totalTimeout)
	defer stop()
	x.deadline = d
	x.recognise(ctx)
	r := &Report{URL: x.secrets.clean(o.URL), Kind: x.kind, Counts: map[State]int{}}
	for _, c := range Checks() {
		if c.Server && x.kind == KindIssuer {
			continue
		}
		r.Findings = append(r.Findings, x.run(ctx, c))
	}
	if o.As != "" {
		r.As = x.client().Name
		r.Replay = x.replay(ctx)
	}
	x.cleanUp(ctx)
	x.finish(r)
	return r, nil
}
