package registration

import "strings"

// Trust says whether clients whose document is at a host may be used.
type Trust string

// Trusts.
const (
	TrustAllow Trust = "allow" // by everybody; people decide on the consent page
	TrustAsk   Trust = "ask"   // after the operator verified the client
	TrustDeny  Trust = "deny"  // not at all
)

// HostRule is what the operator decided about a host.
type HostRule struct {
	// Host is a name in lower case, "*.example.com" for every name below
	// example.com, or "*" for every host.
	Host  string
	Trust Trust
}

// HostPolicy is what the operator decided about hosts. The zero HostPolicy
// allows all.
type HostPolicy []HostRule

// For returns the trust of the most exact rule that fits the host of a client_id.
func (p HostPolicy) For(host string) Trust {
	name, _, _ := splitPort(host)
	trust, best := TrustAllow, -1
	for _, r := range p {
		if n := r.fits(name); n > best {
			trust, best = r.Trust, n
		}
	}
	return trust
}

// fits returns how exactly the rule fits a name, -1 when it does not.
func (r HostRule) fits(name string) int {
	suffix, wild := strings.CutPrefix(r.Host, "*")
	switch {
	case !wild && r.Host == name:
		return len(name) + 1
	case wild && strings.HasSuffix(name, suffix):
		return len(suffix)
	}
	return -1
}
