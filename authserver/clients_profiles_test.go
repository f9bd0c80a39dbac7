package authserver_test

import (
	"net/url"
	"strings"

	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// profile is one client in wide use as the server sees it: what it registers
// and what it sends, byte for byte where that matters.
type profile struct {
	name string

	// How it becomes known, one of the three: the metadata document that it
	// publishes at host and path, what it sends to POST /register, or what the
	// operator typed.
	host, path string
	document   metadata
	dynamic    metadata
	added      *registration.AddOptions
	// needs are members of the server's metadata without which the client goes
	// another way: true, or a value that a list must have.
	needs metadata
	// origin is sent by a client that runs in a browser's page.
	origin string

	// redirects are the redirect URIs it uses, a flow for each.
	redirects []string
	// resource is what it sends at /authorize and /token, "" for nothing; aud is
	// the MCP server it means.
	resource, aud string
	// scope is sent at /authorize; allScopes is all that the server's metadata has.
	scope string
	// state, "" for none, and verifier, "" for a usual one.
	state, verifier string
	// more is sent at /authorize, too.
	more url.Values
	// takesCodeUndecoded reads code from the URL as text and encodes it again.
	takesCodeUndecoded bool

	// auth is how it authenticates at /token.
	auth tokenAuth
	// refreshes is what it sends beside refresh_token, more than once where several
	// of its processes share one token.
	refreshes refreshing
	// registersAgain on invalid_client; others need a person who removes the server
	// and adds it again.
	registersAgain bool
}

type metadata = map[string]any

// tokenAuth is how a client authenticates at the token endpoint.
type tokenAuth string

const (
	inBody       tokenAuth = "client_id in the body"
	probesBasic  tokenAuth = "Basic, without a secret too, then all in the body" // x/oauth2, which does not know the method
	rawBasic     tokenAuth = "Basic without form-encoding"                       // TypeScript: btoa
	encodedBasic tokenAuth = "Basic, form-encoded, and client_id in the body"    // Python
	secretInBody tokenAuth = "client_id and client_secret in the body"
	byKey        tokenAuth = "a client assertion"
)

// refreshing is what a client adds to its refresh requests.
type refreshing struct {
	resource bool
	granted  bool // scope: all that was granted
	offline  bool // and offline_access, granted or not
	atOnce   int  // processes that use the same token at once; 0 is one
}

// allScopes stands for all of scopes_supported.
const allScopes = "*"

// MCP servers of the table beside testkit.Resource: one at the root of its
// host, and one that is alone on its origin.
const (
	rootResource = "https://root.example.com"
	loneResource = "https://lone.example.com/mcp"
)

var (
	bothGrants    = []string{"authorization_code", "refresh_token"}
	needsDocument = metadata{"client_id_metadata_document_supported": true, "token_endpoint_auth_methods_supported": "none",
		"code_challenge_methods_supported": "S256"}
	needsPKCE = metadata{"code_challenge_methods_supported": "S256"}
	needsIss  = metadata{"client_id_metadata_document_supported": true, "token_endpoint_auth_methods_supported": "none",
		"authorization_response_iss_parameter_supported": true}
	everywhere = refreshing{resource: true}
	asRMCP     = refreshing{resource: true, granted: true, offline: true}
)

// public is the metadata of a public client, with more.
func public(name string, redirects []string, more metadata) metadata {
	m := metadata{"client_name": name, "redirect_uris": redirects, "response_types": []string{"code"}, "grant_types": bothGrants,
		"token_endpoint_auth_method": "none"}
	for member, v := range more {
		if m[member] = v; v == nil {
			delete(m, member)
		}
	}
	return m
}

// profiles are the clients, each with the ways in which it becomes known.
func profiles() (all []profile) {
	for _, group := range [][]profile{hostedClients(), editors(), commandLines(), libraries(), pythonLibraries(), others()} {
		all = append(all, group...)
	}
	return all
}

func hostedClients() []profile {
	claude := []string{"https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"}
	const chatState, chatStable = "oauth_s_68f0a1c2d3e4", "https://chatgpt.com/connector_platform_oauth_redirect"
	chatKeys := metadata{"token_endpoint_auth_method": "private_key_jwt", "token_endpoint_auth_methods_supported": []string{"private_key_jwt", "none"},
		"token_endpoint_auth_signing_alg": "RS256", "jwks_uri": jwksOfHost}
	return []profile{
		{name: "Claude web, document", host: "claude.ai", path: "/oauth/mcp-oauth-client-metadata",
			document: public("Claude", claude, metadata{"client_uri": "https://claude.ai"}), needs: needsDocument, redirects: claude,
			resource: testkit.Resource, aud: testkit.Resource, scope: "files:read", state: "Zk0Y3J5cHRv-_x", auth: inBody, refreshes: everywhere, registersAgain: true},
		{name: "Claude web, registers for each connection", dynamic: public("Claude", claude[:1], metadata{"scope": "files:read files:write"}),
			redirects: claude[:1], resource: testkit.Resource, aud: testkit.Resource, scope: "files:read files:write", state: "abc", auth: inBody, registersAgain: true},
		{name: "ChatGPT, document, its key", host: "chatgpt.com", path: "/oauth/client.json", document: public("ChatGPT", []string{chatStable}, chatKeys),
			needs: needsIss, redirects: []string{chatStable}, resource: testkit.Resource, aud: testkit.Resource, scope: "files:read", state: chatState, auth: byKey,
			refreshes: everywhere, registersAgain: true},
		{name: "ChatGPT, document, as a public client", host: "chatgpt.com", path: "/oauth/client.json", document: public("ChatGPT", []string{chatStable}, chatKeys),
			needs: needsIss, redirects: []string{chatStable}, resource: testkit.Resource, aud: testkit.Resource, scope: "files:read", state: chatState, auth: inBody,
			refreshes: everywhere, registersAgain: true},
		// a reconnect names no scope
		{name: "ChatGPT, document of one callback, reconnects", host: "chatgpt.com", path: "/oauth/cb_123/client.json",
			document:  public("ChatGPT", []string{"https://chatgpt.com/connector/oauth/cb_123"}, chatKeys),
			redirects: []string{"https://chatgpt.com/connector/oauth/cb_123"}, resource: testkit.Resource, aud: testkit.Resource, state: chatState, auth: byKey,
			refreshes: everywhere, registersAgain: true},
		{name: "ChatGPT, registers", dynamic: public("ChatGPT", []string{"https://chatgpt.com/connector/oauth/cb_123"}, nil),
			redirects: []string{"https://chatgpt.com/connector/oauth/cb_123"}, resource: testkit.Resource, aud: testkit.Resource, scope: "files:read",
			state: chatState, auth: inBody, refreshes: everywhere, registersAgain: true},
	}
}

func editors() []profile {
	codeURIs := []string{"http://127.0.0.1:33418/", "https://vscode.dev/redirect"}
	codeState := "vscode://dynamicauthprovider/id.example.com/redirect?nonce=" + url.QueryEscape("R/3+x=") + "&windowId=1&pad=" + strings.Repeat("s", 900)
	cursor := []string{"cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"}
	zed := []string{"http://127.0.0.1/callback"}
	return []profile{
		{name: "VS Code, document", host: "vscode.dev", path: "/oauth/client-metadata.json",
			document: public("Visual Studio Code", codeURIs, metadata{"client_uri": "https://code.visualstudio.com", "application_type": "native"}),
			needs:    needsDocument, redirects: append([]string{"http://127.0.0.1:52811/"}, codeURIs...), resource: testkit.Resource, aud: testkit.Resource,
			scope: "files:read files:write", state: codeState, takesCodeUndecoded: true, auth: inBody, registersAgain: true},
		{name: "VS Code, registers four mixed redirect URIs and device_code",
			dynamic: public("Visual Studio Code", []string{"https://insiders.vscode.dev/redirect", "https://vscode.dev/redirect", "http://127.0.0.1/", "http://127.0.0.1:33418/"},
				metadata{"application_type": "native", "grant_types": append([]string{"urn:ietf:params:oauth:grant-type:device_code"}, bothGrants...),
					"client_uri": "https://code.visualstudio.com", "scope": "files:read files:write"}),
			redirects: append([]string{"http://127.0.0.1:60001/", "https://insiders.vscode.dev/redirect"}, codeURIs...), aud: testkit.Resource,
			scope: "files:read files:write", state: codeState, takesCodeUndecoded: true, auth: inBody, registersAgain: true},
		{name: "Cursor, three kinds of redirect URI", dynamic: public("Cursor", cursor, nil), redirects: cursor, resource: testkit.Resource,
			aud: testkit.Resource, scope: "files:read", state: "eyJpZCI6InVzZXItZmlsZXMifQ==", auth: inBody},
		{name: "Zed, document", host: "zed.dev", path: "/oauth/client-metadata.json", document: public("Zed", zed, metadata{"client_uri": "https://zed.dev"}),
			needs: needsDocument, redirects: []string{"http://127.0.0.1:49201/callback"}, resource: testkit.Resource, aud: testkit.Resource, scope: "files:read",
			state: "zed", auth: inBody, refreshes: everywhere},
		{name: "Zed, registers", dynamic: public("Zed", zed, nil), redirects: []string{"http://127.0.0.1:49202/callback"}, resource: testkit.Resource,
			aud: testkit.Resource, scope: "files:read", state: "zed", auth: inBody, refreshes: everywhere},
		{name: "Cline, one of six ports", dynamic: public("Cline", []string{"http://127.0.0.1:1456/mcp/oauth/callback"}, metadata{"scope": "files:read"}),
			redirects: []string{"http://127.0.0.1:1456/mcp/oauth/callback", "http://127.0.0.1:1461/mcp/oauth/callback"}, resource: testkit.Resource,
			aud: testkit.Resource, scope: "files:read", state: "cline", auth: inBody, refreshes: everywhere, registersAgain: true},
		{name: "JetBrains, loopback", dynamic: public("JetBrains AI Assistant", []string{"http://localhost:63342/oauth/callback"}, nil),
			redirects: []string{"http://localhost:63343/oauth/callback"}, aud: testkit.Resource, scope: "files:read", state: "jb", auth: inBody},
		// its scheme has no dot, so the operator adds it (D12)
		{name: "Windsurf, added by the operator", added: &registration.AddOptions{Name: "Windsurf", AuthMethod: registration.AuthNone,
			RedirectURIs: []string{"windsurf://codeium.windsurf/oauth/callback"}}, redirects: []string{"windsurf://codeium.windsurf/oauth/callback"},
			aud: testkit.Resource, scope: "files:read", state: "ws", auth: inBody},
	}
}

func commandLines() []profile {
	loopback := []string{"http://localhost/callback", "http://127.0.0.1/callback"}
	shared := refreshing{resource: true, atOnce: 4}
	sharedRMCP := asRMCP
	sharedRMCP.atOnce = 3
	return []profile{
		// it names the origin of the MCP server instead of its identifier (A24)
		{name: "Claude Code, document", host: "claude.ai", path: "/oauth/claude-code-client-metadata", document: public("Claude Code", loopback, nil),
			needs: needsDocument, redirects: []string{"http://localhost:51999/callback"}, resource: "https://lone.example.com/", aud: loneResource,
			scope: "files:read", state: "cc", auth: inBody, refreshes: shared, registersAgain: true},
		{name: "Claude Code, registers", dynamic: public("Claude Code (files)", []string{"http://localhost:51998/callback"}, nil),
			redirects: []string{"http://localhost:51998/callback"}, resource: rootResource + "/", aud: rootResource, scope: "files:read", state: "cc",
			auth: inBody, refreshes: shared},
		{name: "Claude Code, --client-id of the operator", added: &registration.AddOptions{Name: "Claude Code", AuthMethod: registration.AuthNone,
			RedirectURIs: []string{"http://localhost/callback"}}, redirects: []string{"http://localhost:51997/callback"}, resource: testkit.Resource,
			aud: testkit.Resource, scope: "files:read", state: "cc", auth: inBody, refreshes: shared},
		{name: "Codex, document", host: "chatgpt.com", path: "/oauth/codex/client.json", document: public("Codex", loopback, nil), needs: needsDocument,
			redirects: []string{"http://127.0.0.1:1455/callback", "http://localhost:1455/callback"}, resource: testkit.Resource, aud: testkit.Resource,
			scope: allScopes, state: "codex", auth: inBody, refreshes: sharedRMCP},
		{name: "Codex, an old build without resource", dynamic: public("Codex", []string{"http://127.0.0.1:1455/callback/7f"}, nil),
			redirects: []string{"http://127.0.0.1:1456/callback/7f"}, aud: testkit.Resource, scope: allScopes, state: "codex", auth: inBody,
			refreshes: refreshing{granted: true, offline: true, atOnce: 3}},
		// its document names authorization_code alone, and it refreshes all the same (A29)
		{name: "Goose, document", host: "goose-docs.ai", path: "/oauth/client-metadata.json",
			document: public("goose", []string{"http://127.0.0.1/oauth_callback", "http://[::1]/oauth_callback"}, metadata{"grant_types": bothGrants[:1]}),
			needs:    needsDocument, redirects: []string{"http://127.0.0.1:40123/oauth_callback", "http://[::1]:40123/oauth_callback"},
			resource: testkit.Resource, aud: testkit.Resource, scope: allScopes, state: "goose", auth: inBody, refreshes: asRMCP},
		{name: "Goose, registers", dynamic: public("goose", []string{"http://127.0.0.1:40124/oauth_callback"}, metadata{"application_type": "native"}),
			redirects: []string{"http://127.0.0.1:40124/oauth_callback"}, resource: testkit.Resource, aud: testkit.Resource, scope: allScopes, state: "goose",
			auth: inBody, refreshes: asRMCP},
		{name: "opencode, document", host: "opencode.ai", path: "/oauth/opencode/client.json",
			document: public("opencode", []string{"http://127.0.0.1/callback", "http://localhost/callback"}, nil), needs: needsDocument,
			redirects: []string{"http://127.0.0.1:19876/callback"}, resource: testkit.Resource, aud: testkit.Resource, scope: "files:read offline_access",
			state: "oc", more: values("prompt", "consent"), auth: inBody, refreshes: shared, registersAgain: true},
		{name: "GitHub Copilot CLI", dynamic: public("GitHub Copilot CLI", loopback[1:], nil), redirects: []string{"http://127.0.0.1:41200/callback"},
			resource: testkit.Resource, aud: testkit.Resource, scope: "files:read", state: "gh", auth: inBody, refreshes: refreshing{resource: true, granted: true}},
		// resource is the URL of the MCP server, which is below its identifier (A24)
		{name: "Gemini CLI", dynamic: public("Gemini CLI MCP Client", []string{"http://localhost:7777/oauth/callback"}, metadata{"scope": ""}), needs: needsPKCE,
			redirects: []string{"http://localhost:7777/oauth/callback"}, resource: testkit.Resource + "/mcp", aud: testkit.Resource, scope: "files:read",
			state: "gemini", auth: inBody, refreshes: everywhere, registersAgain: true},
	}
}

func libraries() []profile {
	const web, terminal = "http://localhost:6274/oauth/callback", "http://127.0.0.1:6276/oauth/callback"
	remote := []string{"http://localhost:3335/oauth/callback"}
	sdk := metadata{"application_type": "native", "scope": "files:read"}
	return []profile{
		{name: "TypeScript SDK v1, root of the host", dynamic: public("TypeScript client", []string{"http://localhost:8090/callback"}, metadata{"scope": "files:read"}),
			needs: needsPKCE, redirects: []string{"http://localhost:8090/callback"}, resource: rootResource + "/", aud: rootResource, scope: "files:read",
			auth: inBody, refreshes: everywhere, registersAgain: true},
		{name: "TypeScript SDK v2, root of the host", dynamic: public("TypeScript client", []string{"http://localhost:8091/callback"}, sdk), needs: needsPKCE,
			redirects: []string{"http://localhost:8091/callback"}, resource: rootResource + "/", aud: rootResource, scope: "files:read offline_access",
			more: values("prompt", "consent"), auth: inBody, refreshes: everywhere, registersAgain: true},
		{name: "TypeScript SDK v2, with a secret", dynamic: public("TypeScript service", []string{"https://service.example/callback"},
			metadata{"token_endpoint_auth_method": "client_secret_basic"}), redirects: []string{"https://service.example/callback"}, resource: testkit.Resource,
			aud: testkit.Resource, scope: "files:read", auth: rawBasic, refreshes: everywhere, registersAgain: true},
		{name: "TypeScript SDK v2, document", host: "ts.example", path: "/client.json", document: public("TypeScript client", []string{"http://localhost/callback"}, nil),
			needs: needsDocument, redirects: []string{"http://localhost:8092/callback"}, resource: testkit.Resource, aud: testkit.Resource, scope: "files:read",
			auth: inBody, refreshes: everywhere, registersAgain: true},
		{name: "MCP Inspector, in the page", dynamic: public("MCP Inspector", []string{web}, metadata{"scope": "", "client_uri": "https://github.com/modelcontextprotocol/inspector"}),
			origin: "http://localhost:6274", redirects: []string{web}, resource: testkit.Resource, aud: testkit.Resource, scope: "files:read", state: "insp",
			auth: inBody, refreshes: everywhere, registersAgain: true},
		{name: "MCP Inspector, in the terminal", dynamic: public("MCP Inspector", []string{terminal}, metadata{"scope": ""}), redirects: []string{terminal},
			resource: testkit.Resource, aud: testkit.Resource, scope: "files:read", state: "insp", auth: inBody, refreshes: everywhere, registersAgain: true},
		{name: "mcp-remote, scopes of OpenID Connect", dynamic: public("MCP CLI Proxy", remote, metadata{"scope": "openid email profile",
			"software_id": "2e6dc280-f3c3-4e01-99a7-8181dbd1d23d", "software_version": "0.1.38", "client_uri": "https://github.com/modelcontextprotocol/mcp-cli"}),
			redirects: remote, resource: testkit.Resource, aud: testkit.Resource, scope: "openid email profile", auth: inBody, refreshes: everywhere, registersAgain: true},
		{name: "go-sdk, document, probes with Basic", host: "go.example", path: "/client.json", document: public("Go client", []string{"http://127.0.0.1/callback"}, nil),
			needs: needsDocument, redirects: []string{"http://127.0.0.1:3142/callback"}, resource: testkit.Resource, aud: testkit.Resource, scope: "files:read offline_access",
			state: "go", auth: probesBasic},
		{name: "go-sdk, registers", dynamic: public("Go client", []string{"http://127.0.0.1:3142/callback"}, nil), needs: needsPKCE,
			redirects: []string{"http://127.0.0.1:3142/callback"}, resource: testkit.Resource, aud: testkit.Resource, scope: "files:read", state: "go", auth: probesBasic},
		// the probe fails, and the retry has the same code (A18)
		{name: "go-sdk, with a secret for the body", added: &registration.AddOptions{Name: "Go service", RedirectURIs: []string{"https://go.example/callback"},
			AuthMethod: registration.AuthClientSecretPost}, redirects: []string{"https://go.example/callback"}, resource: testkit.Resource, aud: testkit.Resource,
			scope: "files:read", state: "go", auth: probesBasic},
		{name: "rmcp, registers", dynamic: public("Rust client", []string{"http://localhost:8080/callback"}, metadata{"application_type": "native"}),
			redirects: []string{"http://localhost:8080/callback"}, resource: testkit.Resource, aud: testkit.Resource, scope: allScopes, state: "rmcp", auth: inBody,
			refreshes: asRMCP},
	}
}

func pythonLibraries() []profile {
	const callback = "http://localhost:3030/callback"
	long := strings.Repeat("aZ9-._~", 19)[:128]
	native := metadata{"application_type": "native", "token_endpoint_auth_method": nil}
	return []profile{
		{name: "Python SDK v1, root of the host, leaves the method to the server", dynamic: public("Python client", []string{callback}, metadata{"token_endpoint_auth_method": nil}),
			redirects: []string{callback}, resource: rootResource + "/", aud: rootResource, scope: allScopes, state: long, verifier: long,
			auth: encodedBasic, refreshes: everywhere},
		{name: "Python SDK v2, leaves the method to the server", dynamic: public("Python client", []string{callback}, native), redirects: []string{callback},
			resource: testkit.Resource, aud: testkit.Resource, scope: allScopes, state: long, verifier: long, auth: encodedBasic, refreshes: everywhere},
		{name: "Python SDK v2, document", host: "python.example", path: "/client.json", document: public("Python client", []string{"http://localhost/callback"}, nil),
			needs: needsDocument, redirects: []string{callback}, resource: testkit.Resource, aud: testkit.Resource, scope: allScopes, state: long, verifier: long,
			auth: inBody, refreshes: everywhere},
	}
}

func others() []profile {
	const libre, perplexity = "https://chat.corp.example/api/mcp/files/oauth/callback", "https://www.perplexity.ai/rest/connections/oauth_callback"
	const mistral, n8n, zapier = "https://callback.mistral.ai/v1/integrations_auth/oauth2_callback", "https://n8n.corp.example/rest/oauth2-credential/callback",
		"https://zapier.com/dashboard/auth/oauth/return/App1CLIAPI/"
	return []profile{
		{name: "LibreChat, registers with a secret", dynamic: public("LibreChat", []string{libre}, metadata{"token_endpoint_auth_method": "client_secret_basic", "scope": "files:read"}),
			redirects: []string{libre}, resource: testkit.Resource, aud: testkit.Resource, scope: "files:read", state: "user:files", auth: encodedBasic},
		{name: "LibreChat, added by the operator", added: &registration.AddOptions{Name: "LibreChat", RedirectURIs: []string{libre}, AuthMethod: registration.AuthClientSecretPost},
			redirects: []string{libre}, aud: testkit.Resource, scope: "files:read", state: "user:files", auth: secretInBody},
		{name: "Perplexity", dynamic: public("Perplexity", []string{perplexity}, nil), redirects: []string{perplexity}, aud: testkit.Resource, scope: "files:read",
			state: "pplx", auth: inBody},
		{name: "Le Chat", dynamic: public("Mistral AI", []string{mistral}, nil), redirects: []string{mistral}, resource: testkit.Resource, aud: testkit.Resource,
			scope: "files:read", state: "lechat", auth: inBody},
		{name: "n8n", added: &registration.AddOptions{Name: "n8n", RedirectURIs: []string{n8n}, AuthMethod: registration.AuthClientSecretBasic},
			redirects: []string{n8n}, aud: testkit.Resource, scope: "files:read", state: "n8n", auth: encodedBasic},
		{name: "Zapier", added: &registration.AddOptions{Name: "Zapier", RedirectURIs: []string{zapier}, AuthMethod: registration.AuthClientSecretPost},
			redirects: []string{zapier}, aud: testkit.Resource, scope: "files:read", state: "zap", auth: secretInBody},
	}
}
