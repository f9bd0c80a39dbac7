// Package authclient calls MCP servers that want an access token: a program takes
// an http.Client from it and forgets about OAuth. It owns the client half of the
// MCP authorization specification: discovery (RFC 9728, RFC 8414), registration
// (configured, Client ID Metadata Documents, RFC 7591), authorization with PKCE
// (RFC 7636), resource indicators (RFC 8707) and issuer identification (RFC 9207),
// refresh, step-up and revocation (RFC 7009), against any authorization server.
// How a person is asked is an Authorizer; where tokens are kept is a Store.
package authclient
