// Package endpoint turns handlers that return an error into http.Handlers: JSON
// for OAuth endpoints (RFC 6749 §5.2: JSON error, no-store), Page for people's
// pages (an error page). No handler writes an error itself. It also holds what
// surrounds every request: request id, body limit, panic recovery, the Host
// check and the network source.
package endpoint
