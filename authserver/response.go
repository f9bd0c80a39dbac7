package authserver

import (
	"net/url"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// responseURL adds the parameters of an authorization response to a redirect
// URI that already matched (RFC 6749 §4.1.2). A query of its own stays as it is.
func responseURL(redirectURI string, params url.Values) string {
	sep := "?"
	if strings.Contains(redirectURI, "?") {
		sep = "&"
		if strings.HasSuffix(redirectURI, "?") || strings.HasSuffix(redirectURI, "&") {
			sep = ""
		}
	}
	return redirectURI + sep + params.Encode()
}

// successParams are code, state as it came, and exactly one iss (RFC 9207, A6).
func (s *Server) successParams(req *flow.AuthorizationRequest, code oauth.Secret) url.Values {
	return withState(url.Values{"code": {code.Reveal()}, "iss": {s.o.Issuer}}, req.State, req.HasState)
}

// errorParams are error, error_description, state and iss.
func errorParams(issuer string, e *oauth.Error, state string, hasState bool) url.Values {
	p := url.Values{"error": {e.Code}, "iss": {issuer}}
	if e.Description != "" {
		p.Set("error_description", e.Description)
	}
	return withState(p, state, hasState)
}

func withState(p url.Values, state string, hasState bool) url.Values {
	if hasState {
		p.Set("state", state)
	}
	return p
}
