package authclient

import "context"

// Machine gets tokens with a credential of the program's own instead of asking a
// person. Each is configured with the issuer that its credential belongs to, and
// sends it nowhere else.
type Machine interface {
	// token asks for one access token for what r says.
	token(ctx context.Context, r machineRequest) (*tokenResponse, error)
}
