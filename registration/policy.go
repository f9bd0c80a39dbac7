package registration

import "time"

// Mode says who may register a client at POST /register.
type Mode string

// Modes of dynamic registration. Initial access tokens and allowlists come in
// part 2.
const (
	ModeOpen   Mode = "open"   // anybody, within the budgets
	ModeClosed Mode = "closed" // nobody; the operator adds clients
)

// Policy says who may register, and how often. The zero Policy is closed.
type Policy struct {
	// Mode is open or closed.
	Mode Mode
	// PerSource is how many clients one network source may register in an hour;
	// 0 is DefaultPerSource. Hosted clients share few addresses and register for
	// each connection, so it must not be small (A38).
	PerSource int
	// Total is how many clients all sources together may register in an hour; 0
	// is DefaultTotal.
	Total int
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
	if p.PerSource == 0 {
		p.PerSource = DefaultPerSource
	}
	if p.Total == 0 {
		p.Total = DefaultTotal
	}
	return p
}
