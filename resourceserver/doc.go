// Package resourceserver protects an MCP server, or any HTTP handler, with
// OAuth 2.0 access tokens as the MCP specification asks: challenges (RFC 6750,
// RFC 9728 §5.1), the protected resource metadata document (RFC 9728), JWT
// access tokens (RFC 9068) verified against the keys that the authorization
// server publishes, or introspection (RFC 7662), audience (RFC 8707) and scopes,
// also per tool. It works with any authorization server that issues such tokens.
//
// # Ten lines
//
//	rs, err := resourceserver.New(resourceserver.Options{
//		Issuer:   "https://login.example.com",
//		Resource: "https://mcp.example.com/mcp",
//		Scopes:   []string{"notes:read"},
//		Operations: resourceserver.Tools(map[string][]string{
//			"list_notes": {"notes:read"},
//			"add_note":   {"notes:write"},
//		}),
//	})
//	...
//	http.ListenAndServe(addr, rs.Protect(mcpHandler))
//
// Protect serves the metadata document itself and refuses everything else that
// comes without a valid token. The package keeps no state but the issuer's keys
// and verified tokens, by their hash; it starts no goroutine before the first
// request.
//
// # With an SDK
//
// On the official Go SDK wrap the SDK's handler in mcpsdk.Handler, a package
// below this one: its tools run in the context of the session's first request,
// and find the token of their own request by mcpsdk.Token. On mark3labs/mcp-go
// the context is the request's, and TokenFromContext works in every handler; with
// package mcpgo tools declare their scopes themselves. Any other http.Handler
// needs nothing: it asks TokenFromContext. Programs that import this package
// compile neither SDK.
//
// # Scopes
//
// With Options.Operations each message of a client is read (JSON-RPC, batches
// too) and the scopes asked for that its tool, prompt or resource needs. What two
// parsers could read differently is refused, and what was read is handed on byte
// for byte. A token that lacks something gets 403 with a challenge that names all
// that is needed, and the client asks the person for it: the step-up. What the
// table does not name is refused unless Options.DefaultScopes says otherwise.
// With Options.FilterLists a client sees only what its token may call.
//
// # What a handler must know
//
//   - A *Token is shared by the requests that carry it, while it is remembered
//     (Options.TokenCache): read it, never change it or its slices.
//   - Token.HasScopes looks at the token alone. Server.Allows knows
//     Options.Implies, and is what a handler should ask.
//   - Token.Subject is unique within Token.Issuer only. With several issuers both
//     together name the person.
//   - Protect deletes Authorization from the request, so that nothing behind it
//     can pass the token on (the MCP specification forbids that). A handler that
//     calls another server needs a token of its own for it.
//   - An event stream ends when its token expires; context.Cause of the request is
//     then ErrTokenExpired. A session id serves only who began the session. Pages
//     at names that were rebound to this machine stay outside.
//
// # Other authorization servers
//
// Issuers whose tokens are not those of RFC 9068, or are no JWTs, have options of
// their own: see Issuer, Profile and Introspection. The repository's
// docs/authorization-servers.md says what to set for which server, and
// docs/protect-an-mcp-server.md leads through everything above.
package resourceserver
