package authclient

import "encoding/json"

// newProver makes a key for a grant to come, and what is stored of it, where the
// caller wants tokens bound to one, or the MCP server takes no others (RFC 9728 §2,
// dpop_bound_access_tokens_required), and the authorization server can. Otherwise it is
// a bearer token.
func (c *Client) newProver(p *place) (*proofKey, json.RawMessage, error) {
	if !c.o.DPoP && !p.bound {
		return nil, nil, nil
	}
	if as := p.server; !canDPoP(as) {
		if c.o.RequireDPoP {
			return nil, nil, refused("the authorization server %s does not say that it supports DPoP with ES256", quoted(as.Issuer))
		}
		return nil, nil, nil
	}
	key, err := newProofKey()
	if err != nil {
		return nil, nil, err
	}
	raw, err := key.encode()
	if err != nil {
		return nil, nil, err
	}
	return key, raw, nil
}

// proverOf returns what proves possession of a grant's key; nil for a bearer token.
func (c *Client) proverOf(g *grant) (*proofKey, error) {
	if g.Key == nil {
		return nil, nil
	}
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if p, ok := c.session.provers[string(g.Key)]; ok {
		return p, nil
	}
	key, err := parseProofKey(g.Key)
	if err != nil {
		return nil, err
	}
	clear(c.session.provers) // one is used at a time
	c.session.provers[string(g.Key)] = key
	return key, nil
}

// checkType refuses a bearer token where the caller wants none.
func (c *Client) checkType(r *tokenResponse, bound bool) error {
	if r.TokenType == "N_A" {
		return refused("the authorization server issued something that is no access token")
	}
	if c.o.RequireDPoP && (r.TokenType != typeDPoP || !bound) {
		return refused("the authorization server issued a token that is not bound to the key")
	}
	return nil
}

// proving is key as a prover; a missing key is none.
func proving(key *proofKey) prover {
	if key == nil {
		return nil
	}
	return key
}
