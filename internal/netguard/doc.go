// Package netguard is the one HTTP client for URLs that a foreigner names: a
// Client ID Metadata Document, a client's jwks_uri. Which addresses are public is
// code.dny.dev/ssrf's business, which follows IANA's registries; ours is that
// nothing else is asked: https on port 443, one name, no redirect, five seconds,
// so many bytes (docs/adr/0009). What the answer means, and how often anybody may
// cause a request, is the caller's.
package netguard
