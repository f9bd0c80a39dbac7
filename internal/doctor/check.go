package doctor

import (
	"context"
	"fmt"
)

// State is what became of a check.
type State string

// The states, from good to bad. Skipped says nothing about what was not looked at.
const (
	OK      State = "ok"
	Skipped State = "skipped"
	Warn    State = "warn"
	Broken  State = "broken"
)

// Check is one question about one hop. Its ID never changes: scripts, the table
// of clients and docs/doctor.md name it.
type Check struct {
	// ID names the finding, e.g. "challenge-status".
	ID string
	// Hop is the part of the path that is looked at.
	Hop Hop
	// Title is what is true when nothing is wrong.
	Title string
	// Server marks a check that only an MCP server can pass.
	Server bool
	// Needs are checks that must not be broken for this one to say anything: one
	// fault is one finding, not twenty.
	Needs []string
	// Fix is what to change when it is broken.
	Fix string
	// Reference is where that is asked for.
	Reference string
	// Run looks. It asks through the examination's prober only.
	Run func(ctx context.Context, x *examination) Outcome
}

// Hop is a part of the path from a client to a token.
type Hop string

// The hops, in the order in which a client comes by them.
const (
	HopServerNetwork Hop = "network of the MCP server"
	HopChallenge     Hop = "challenge"
	HopResource      Hop = "protected resource metadata"
	HopIssuerNetwork Hop = "network of the authorization server"
	HopIssuer        Hop = "authorization server metadata"
	HopBrowser       Hop = "clients in a browser"
	HopRegistration  Hop = "registration"
	HopAuthorize     Hop = "authorization endpoint"
	HopToken         Hop = "token endpoint"
	HopKeys          Hop = "keys"
	HopAccess        Hop = "access token"
)

// Outcome is what a check found.
type Outcome struct {
	State State
	// Asked and Came are the request that decided, and what came of it.
	Asked, Came string
	// Why says what is wrong, or why nothing was looked at.
	Why string
	// Fix, when set, is more exact than the check's.
	Fix string
	// from is the exchange of Asked and Came.
	from *exchange
	// rows name who breaks, when the table's row of the check is not it.
	rows []string
}

// on adds the exchange that an outcome rests on.
func (o Outcome) on(e *exchange) Outcome {
	o.Asked, o.Came, o.from = e.asked(), e.came(), e
	return o
}

// fix replaces the check's advice by one that knows the values.
func (o Outcome) fix(format string, args ...any) Outcome {
	o.Fix = fmt.Sprintf(format, args...)
	return o
}

// breaks replaces the table's row of the check by others.
func (o Outcome) breaks(rows ...string) Outcome {
	o.rows = rows
	return o
}

func ok(format string, args ...any) Outcome {
	return Outcome{State: OK, Came: fmt.Sprintf(format, args...)}
}

func skipped(format string, args ...any) Outcome {
	return Outcome{State: Skipped, Why: fmt.Sprintf(format, args...)}
}

func warn(format string, args ...any) Outcome {
	return Outcome{State: Warn, Why: fmt.Sprintf(format, args...)}
}

func broken(format string, args ...any) Outcome {
	return Outcome{State: Broken, Why: fmt.Sprintf(format, args...)}
}

// Finding is a check's outcome in the report. Its texts are redacted and safe to
// print.
type Finding struct {
	ID        string     `json:"id"`
	Hop       Hop        `json:"hop"`
	Title     string     `json:"title"`
	State     State      `json:"state"`
	Asked     string     `json:"asked,omitempty"`
	Came      string     `json:"came,omitempty"`
	Why       string     `json:"why,omitempty"`
	Clients   []Affected `json:"clients,omitempty"`
	Fix       string     `json:"fix,omitempty"`
	Reference string     `json:"reference,omitempty"`
	// Elsewhere marks a fault that the client of --as does not notice.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// Affected is a client that breaks on a finding, and how that shows.
type Affected struct {
	Name string `json:"name"`
	How  string `json:"how,omitempty"`
}
