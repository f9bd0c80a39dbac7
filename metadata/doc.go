// Package metadata owns the discovery documents that both sides read: of the
// authorization server (RFC 8414, and OpenID Connect Discovery 1.0, which some
// clients ask for first) and of the protected resource (RFC 9728). It knows
// where they live, serves them and fetches them; what they say is decided by who
// fills them. It imports nothing but the standard library and internal/oauth, so
// that the middleware and the client library can use it.
package metadata
