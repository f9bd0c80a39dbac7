package doctor

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Members by their type. Those that are not here are nobody's business.
var (
	textMembers = []string{"issuer", "authorization_endpoint", "token_endpoint", "jwks_uri", "registration_endpoint", "revocation_endpoint",
		"introspection_endpoint", "device_authorization_endpoint", "service_documentation", "op_policy_uri", "op_tos_uri"}
	listMembers = []string{"scopes_supported", "response_types_supported", "response_modes_supported", "grant_types_supported",
		"token_endpoint_auth_methods_supported", "code_challenge_methods_supported", "ui_locales_supported"}
	flagMembers = []string{"authorization_response_iss_parameter_supported", "client_id_metadata_document_supported"}
)

func checkMetadataTypes(_ context.Context, x *examination) Outcome {
	d := x.issuerDoc
	check := func(names []string, want string, fits func(json.RawMessage) bool) (Outcome, bool) {
		for _, name := range names {
			if v, found := d[name]; found && !fits(v) {
				return broken("%s is %s, not %s: parsers with a schema throw the document away", name, v, want), true
			}
		}
		return Outcome{}, false
	}
	if out, bad := check(textMembers, "a string", fits[string]); bad {
		return out
	}
	if out, bad := check(listMembers, "a list of strings", fits[[]string]); bad {
		return out
	}
	if out, bad := check(flagMembers, "true or false", fits[bool]); bad {
		return out
	}
	return ok("%d members", len(d))
}

// fits reports a value of type T; null fits none.
func fits[T any](v json.RawMessage) bool {
	var t T
	return string(v) != "null" && json.Unmarshal(v, &t) == nil
}

func checkMetadataEndpoints(_ context.Context, x *examination) Outcome {
	for _, name := range []string{"authorization_endpoint", "token_endpoint"} {
		if x.issuerDoc.text(name) == "" {
			return broken("%s", x.issuerDoc.member(name))
		}
	}
	if !slices.Contains(x.issuerDoc.list("response_types_supported"), "code") {
		return broken("%s, which must list code", x.issuerDoc.member("response_types_supported"))
	}
	return ok("authorization_endpoint, token_endpoint, response_types_supported")
}

// endpointMembers are the URLs of the metadata that clients ask or open.
var endpointMembers = []string{"authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint", "jwks_uri", "device_authorization_endpoint"}

func checkMetadataURLs(ctx context.Context, x *examination) Outcome {
	for _, name := range endpointMembers {
		raw := x.issuerDoc.text(name)
		if raw == "" {
			continue
		}
		u, err := url.Parse(raw)
		switch {
		case err != nil || webURL(u) != nil || strings.Contains(raw, "#"):
			return broken("%s is %q: not a URL that a client may open", name, raw)
		case u.Scheme == "http" && !isLoopbackHost(u.Hostname()):
			return broken("%s is %q: http", name, raw)
		case isLoopbackHost(u.Hostname()) && !isLoopbackHost(x.issuerURL().Hostname()):
			return broken("%s is %q: a loopback host, which for each client is its own machine", name, raw)
		}
		if _, given := x.probe.connectTo[strings.ToLower(hostPort(u))]; given {
			continue
		}
		if _, err := x.probe.addresses(ctx, hostPort(u)); err != nil {
			return broken("%s is %q: %s", name, raw, plainError(err))
		}
	}
	return ok("https")
}

func checkMetadataPKCE(_ context.Context, x *examination) Outcome {
	const name = "code_challenge_methods_supported"
	switch {
	case slices.Contains(x.issuerDoc.list(name), "S256"):
		return ok("S256")
	case !x.issuerDoc.has(name):
		return broken("no %s: MCP wants clients to refuse, and many go on", name).breaks(pkceAbsent)
	}
	return broken("%s, without S256: clients must refuse to go on", x.issuerDoc.member(name))
}

func checkMetadataPublic(_ context.Context, x *examination) Outcome {
	if !slices.Contains(x.issuerDoc.list("token_endpoint_auth_methods_supported"), "none") {
		return broken("%s, without none", x.issuerDoc.member("token_endpoint_auth_methods_supported"))
	}
	return ok("none")
}

func checkMetadataGrants(_ context.Context, x *examination) Outcome {
	list := x.issuerDoc.list("grant_types_supported")
	switch {
	case !x.issuerDoc.has("grant_types_supported"):
		return warn("no grant_types_supported, which by default means implicit too")
	case !slices.Contains(list, "authorization_code"):
		return broken("%s, without authorization_code", x.issuerDoc.member("grant_types_supported"))
	case !slices.Contains(list, "refresh_token"):
		return warn("without refresh_token: people log in again whenever a token expires")
	}
	return ok("%s", strings.Join(list, ", "))
}

func checkMetadataISS(_ context.Context, x *examination) Outcome {
	if !x.issuerDoc.is("authorization_response_iss_parameter_supported") {
		return warn("%s: clients cannot tell whose response it is (mix-up)", x.issuerDoc.member("authorization_response_iss_parameter_supported"))
	}
	return ok("promised")
}

func checkMetadataScopes(_ context.Context, x *examination) Outcome {
	if !x.issuerDoc.has("scopes_supported") {
		return warn("no scopes_supported")
	}
	return ok("%d scopes", len(x.issuerDoc.list("scopes_supported")))
}

func checkMetadataOpenID(ctx context.Context, x *examination) Outcome {
	forms, answers := x.metadataForms(ctx)
	for i, e := range answers[1:] {
		d := parseDocument(e.body)
		if e.status != http.StatusOK || d == nil {
			continue
		}
		for _, name := range []string{"jwks_uri", "subject_types_supported", "id_token_signing_alg_values_supported", "response_types_supported"} {
			if !d.has(name) {
				return broken("the form %s has %s: parsers with a schema throw instead of looking further", forms[i+1].name, d.member(name)).on(e)
			}
		}
	}
	return ok("%s", statuses(answers[1:]))
}
