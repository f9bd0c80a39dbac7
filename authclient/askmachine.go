package authclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// newMachineGrant makes the grant of a machine's token.
func (c *Client) newMachineGrant(p *place, r *tokenResponse, scopes []string, key json.RawMessage) *grant {
	g := &grant{Issuer: p.server.Issuer, Resource: p.resource, AccessToken: r.AccessToken.Reveal(), TokenType: r.TokenType,
		Issued: c.o.Now(), Expiry: r.Expiry, Scopes: scopes, Key: key}
	if r.Scope != nil {
		g.Scopes = r.Scope
	}
	return g
}

// askMachine gets a token with the machine identity. It lives in this process alone:
// another is as quickly got.
func (c *Client) askMachine(ctx context.Context, p *place, scopes []string) (*grant, error) {
	if err := c.session.resting(c.o.Now()); err != nil {
		return nil, err
	}
	if p.server.TokenEndpoint == "" {
		return nil, fmt.Errorf("the authorization server %s has no token endpoint", quoted(p.server.Issuer))
	}
	key, stored, err := c.newProver(p)
	if err != nil {
		return nil, err
	}
	r, err := c.o.Machine.token(ctx, machineRequest{endpoint: c.endpoint, server: p.server, resource: p.resource,
		scopes: scopes, prover: proving(key)})
	if err == nil {
		err = c.checkType(r, key != nil)
	}
	if err != nil {
		c.restMachine(err)
		return nil, err
	}
	c.session.rested()
	g := c.newMachineGrant(p, r, scopes, stored)
	c.session.setNew(g, true)
	return g, nil
}

// restMachine begins a pause after whatever a server did not answer with a token, so
// that requests that wait for one do not each ask again: a refusal of a machine is
// final until something changes.
func (c *Client) restMachine(err error) {
	var answered *ServerError
	var unanswered *UnansweredError
	switch {
	case errors.As(err, &answered):
		c.session.rest(err, answered.RetryAfter, c.o.Now())
	case errors.As(err, &unanswered):
		c.session.rest(err, 0, c.o.Now())
	}
}
