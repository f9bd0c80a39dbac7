// Package audit is the record of what people, clients and operators did: one
// row an event, written in the same transaction as the change it tells of
// (decision D35). It holds no secret and no token. The hash chain comes later.
package audit

import (
	"context"
	"net/netip"
	"time"
)

// Event is one audit record. Empty fields do not apply.
type Event struct {
	// ID is a random identifier, made by New.
	ID string
	// At is when it happened.
	At time.Time
	// Name is the constant name of the event, e.g. "grant.reuse_detected".
	Name string
	// Actor is who did it: an account id, a client_id, "operator" for the
	// command line, "system" for housekeeping.
	Actor string
	// Subject is the account concerned.
	Subject string
	// ClientID is the client concerned.
	ClientID string
	// Resource is the resource identifier concerned.
	Resource string
	// GrantID is the grant concerned.
	GrantID string
	// Outcome is "success", "denied" or "failure".
	Outcome string
	// IP is the network source, when the event came over HTTP.
	IP string
	// RequestID joins the event with the log lines of its request.
	RequestID string
	// Detail holds further facts, never a secret.
	Detail map[string]string
}

// Store keeps events; it only ever appends.
type Store interface {
	// Append writes e. Called inside InTx it commits or vanishes with the change.
	Append(ctx context.Context, e Event) error
	// ListEvents returns the newest events first, at most limit.
	ListEvents(ctx context.Context, limit int) ([]Event, error)
}

type sourceKey struct{}

// Source is where a request came from; endpoint puts it into the context.
type Source struct {
	IP        string
	RequestID string
}

// unknownSource is the class of a source without an address.
const unknownSource = "unknown"

// Class is what one customer of a network usually has, and what every limit
// counts under: an IPv4 address, or the /64 of an IPv6 address, of which one
// machine holds all (DO-04). An IPv4 address written as IPv6 is the IPv4 one,
// and what is no address at all is one class, "unknown".
func (s Source) Class() string {
	addr, err := netip.ParseAddr(s.IP)
	if err != nil {
		return unknownSource
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	prefix, err := addr.Prefix(64)
	if err != nil { // cannot happen: every IPv6 address has a /64
		return unknownSource
	}
	return prefix.String()
}

// WithSource returns a context that carries src for later events.
func WithSource(ctx context.Context, src Source) context.Context {
	return context.WithValue(ctx, sourceKey{}, src)
}

// SourceFrom returns the source in ctx, or the zero Source.
func SourceFrom(ctx context.Context) Source {
	src, _ := ctx.Value(sourceKey{}).(Source)
	return src
}
