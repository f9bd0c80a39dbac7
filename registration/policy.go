package registration

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Mode says who may register a client at POST /register.
type Mode string

// Modes of dynamic registration.
const (
	ModeOpen      Mode = "open"      // anybody, within the budgets
	ModeToken     Mode = "token"     // who has an initial access token (RFC 7591 §3)
	ModeStatement Mode = "statement" // who has a software statement of a configured issuer (RFC 7591 §2.3)
	ModeClosed    Mode = "closed"    // nobody; the operator adds clients
)

var modes = []Mode{ModeOpen, ModeToken, ModeStatement, ModeClosed}

// Management says which clients get a registration access token, with which
// they read, change and delete their own registration (RFC 7592).
type Management string

// Kinds of Management. A public client gets no token unless the policy says
// "all": what a program of many people's machines is given is kept badly, and a
// registration that nobody can change may be given out again when it is repeated.
const (
	ManageNone         Management = "off"
	ManageConfidential Management = "confidential" // clients that keep a credential anyway
	ManageAll          Management = "all"
)

var managements = []Management{ManageNone, ManageConfidential, ManageAll}

// Policy says who may register, what, and how often. The zero Policy is closed.
type Policy struct {
	// Mode says who may register; "" is closed.
	Mode Mode
	// Management says who gets a registration access token; "" is off.
	Management Management
	// PerSource is how many clients that nobody has used yet one network source
	// may have registered in the last hour; 0 is DefaultPerSource. A client that
	// somebody approved gives its place back: hosted clients share few addresses
	// and register for each connection (A38).
	PerSource int
	// Total is the same for all sources together; 0 is DefaultTotal.
	Total int
	// RedirectHosts, when not empty, are the only hosts of https redirect URIs;
	// "*.example.com" stands for every host below example.com.
	RedirectHosts []string
	// RedirectSchemes, when not empty, are the only schemes of redirect URIs.
	// http is for loopback only whatever stands here.
	RedirectSchemes []string
}

// Budgets of a Policy that names none.
const (
	DefaultPerSource = 120
	DefaultTotal     = 2000
)

// budgetWindow is the time over which budgets count.
const budgetWindow = time.Hour

// budgetRetry is what a client over the budget is told to wait. Registrations
// leave the window one by one, so a whole window would be too long.
const budgetRetry = 10 * time.Minute

func (p Policy) withDefaults() Policy {
	if p.Mode == "" {
		p.Mode = ModeClosed
	}
	if p.Management == "" {
		p.Management = ManageNone
	}
	if p.PerSource == 0 {
		p.PerSource = DefaultPerSource
	}
	if p.Total == 0 {
		p.Total = DefaultTotal
	}
	return p
}

// check returns all that is wrong with a policy with defaults.
func (p Policy) check() error {
	var errs []error
	if !slices.Contains(modes, p.Mode) {
		errs = append(errs, fmt.Errorf("registration: mode %q is none of open, token, statement, closed", p.Mode))
	}
	if !slices.Contains(managements, p.Management) {
		errs = append(errs, fmt.Errorf("registration: management %q is none of off, confidential, all", p.Management))
	}
	if p.PerSource < 0 || p.Total < 0 {
		errs = append(errs, errors.New("registration: budgets must not be negative"))
	}
	return errors.Join(errs...)
}

// manages reports whether a new client gets a registration access token.
func (p Policy) manages(c *Client) bool {
	return p.Management == ManageAll || p.Management == ManageConfidential && !c.IsPublic()
}

// checkRedirects applies the operator's allow-lists to redirect URIs that are
// valid already, and says which is refused (A10).
func (p Policy) checkRedirects(uris []string) error {
	for i, uri := range uris {
		scheme, _, _ := strings.Cut(uri, ":")
		if len(p.RedirectSchemes) > 0 && !slices.Contains(p.RedirectSchemes, scheme) {
			return oauth.InvalidRedirectURI("redirect_uris[%d]: its scheme is not one that this server accepts", i)
		}
		if len(p.RedirectHosts) > 0 && scheme == "https" && !p.allowsHost(uri) {
			return oauth.InvalidRedirectURI("redirect_uris[%d]: its host is not one that this server accepts", i)
		}
	}
	return nil
}

func (p Policy) allowsHost(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return slices.ContainsFunc(p.RedirectHosts, func(allowed string) bool { return HostRule{Host: allowed}.fits(host) >= 0 })
}
