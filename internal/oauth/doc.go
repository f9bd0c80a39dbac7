// Package oauth is the vocabulary that every other package shares: OAuth
// errors, secrets that print as [redacted], and the pure rules of the RFCs that
// need no state (PKCE, RFC 7636; scope syntax, RFC 6749 §3.3; resource
// indicators, RFC 8707; parameters that may not repeat, RFC 6749 §3.1; the
// WWW-Authenticate challenge, RFC 6750 §3). It imports the standard library
// only, so that the middleware and the client library can use it.
package oauth
