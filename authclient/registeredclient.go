package authclient

import (
	"errors"
	"fmt"
)

// check returns what is wrong with r.
func (r RegisteredClient) check() error {
	if _, err := parseURL("issuer of a registered client", r.Issuer); err != nil {
		return err
	}
	if err := r.checkMethod(); err != nil {
		return fmt.Errorf("the client registered with %s: %w", r.Issuer, err)
	}
	return nil
}

func (r RegisteredClient) checkMethod() error {
	if r.ClientID == "" {
		return errors.New("it has no ClientID")
	}
	if r.Key != nil {
		if r.ClientSecret != "" {
			return errors.New("it has both a ClientSecret and a Key: give the one that it is registered with")
		}
		if _, err := r.Key.algorithm(); err != nil {
			return err
		}
	}
	fits := map[string]bool{"": true, authNone: r.ClientSecret == "" && r.Key == nil,
		authBasic: r.ClientSecret != "", authPost: r.ClientSecret != "", authKey: r.Key != nil}
	if ok, known := fits[r.AuthMethod]; !known {
		return fmt.Errorf("its AuthMethod %s is not known here", quoted(r.AuthMethod))
	} else if !ok {
		return fmt.Errorf("its AuthMethod %s does not fit its ClientSecret and Key", r.AuthMethod)
	}
	return nil
}

// method returns how the client proves itself to a server that lists supported.
func (r RegisteredClient) method(supported []string) string {
	switch {
	case r.AuthMethod != "":
		return r.AuthMethod
	case r.Key != nil:
		return authKey
	case r.ClientSecret == "":
		return authNone
	}
	return secretMethod(supported)
}

// authTo returns what proves the client to as, and refuses every server but the one
// that its credential belongs to.
func (r RegisteredClient) authTo(as *authorizationServer) (clientAuth, error) {
	if as.Issuer != r.Issuer {
		return nil, refused("the MCP server names the authorization server %s, and the credential belongs to %s", quoted(as.Issuer), quoted(r.Issuer))
	}
	method := r.method(as.TokenEndpointAuthMethodsSupported)
	if method == authKey {
		return keyAuth{clientID: r.ClientID, key: r.Key}, nil
	}
	return secretAuth{clientID: r.ClientID, secret: r.ClientSecret, method: method}, nil
}
