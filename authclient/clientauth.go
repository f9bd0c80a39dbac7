package authclient

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// Methods of token_endpoint_auth_method (RFC 7591 §2).
const (
	authNone  = "none"
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
)

// clientAuth is how a client proves itself at an authorization server's endpoint. It
// is always explicit: a code is good for one try (rule C4).
type clientAuth interface {
	// authenticate adds to the form or to the header what proves the client.
	authenticate(as *authorizationServer, form url.Values, header http.Header, now time.Time) error
}

// secretAuth proves a client by its secret, or names one that has none.
type secretAuth struct {
	clientID string
	secret   Secret
	method   string
}

func (s secretAuth) authenticate(_ *authorizationServer, form url.Values, header http.Header, _ time.Time) error {
	switch s.method {
	case authNone:
		form.Set("client_id", s.clientID)
	case authPost:
		form.Set("client_id", s.clientID)
		form.Set("client_secret", s.secret.Reveal())
	case authBasic:
		// RFC 6749 §2.3.1: both are form-encoded first
		pair := url.QueryEscape(s.clientID) + ":" + url.QueryEscape(s.secret.Reveal())
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	default:
		return fmt.Errorf("token_endpoint_auth_method %s is not known here", quoted(s.method))
	}
	return nil
}

// secretMethod chooses how a secret is sent: Basic, which every server must have (RFC
// 6749 §2.3.1), unless it lists post and not Basic.
func secretMethod(supported []string) string {
	if slices.Contains(supported, authPost) && !slices.Contains(supported, authBasic) {
		return authPost
	}
	return authBasic
}
