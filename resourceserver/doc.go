// Package resourceserver protects an MCP server, or any HTTP handler, with
// OAuth 2.0 access tokens as the MCP specification asks: challenges (RFC 6750,
// RFC 9728 §5.1), the protected resource metadata document (RFC 9728), JWT
// access tokens (RFC 9068) verified against the keys that the authorization
// server publishes, audience (RFC 8707) and scopes, also per tool.
//
// It works with any authorization server that issues such tokens:
//
//	rs, err := resourceserver.New(resourceserver.Options{
//		Issuer:   "https://login.example.com",
//		Resource: "https://mcp.example.com/mcp",
//		Scopes:   []string{"notes:read"},
//	})
//	...
//	http.ListenAndServe(addr, rs.Protect(mcpHandler))
//
// Protect serves the metadata document itself and refuses everything else that
// comes without a valid token. A handler behind it finds the token's claims by
// TokenFromContext. The package keeps no state but the issuer's keys and verified
// tokens, by their hash; it starts no goroutine before the first request.
//
// With Options.Operations it reads each message of a client (JSON-RPC, batches
// too) and asks for the scopes that the tool, prompt or resource needs. What two
// parsers could read differently is refused, and what was read is handed on byte
// for byte. With Options.FilterLists a client sees only what its token may call.
//
// An event stream ends when its token expires, a session id serves only who began
// the session, and pages at names that were rebound to this machine stay outside.
//
// Issuers whose tokens are not those of RFC 9068, or are no JWTs, have options of
// their own: see Issuer, Profile and Introspection (RFC 7662).
package resourceserver
