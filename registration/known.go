package registration

import "slices"

// knownRedirectHosts are the https hosts to which clients in wide use have
// their responses sent (Claude, ChatGPT, VS Code, Cursor,
// Perplexity). An https redirect to another host by a client nobody vouches for
// gets the amber box (D32). A host of this list is known, not verified.
var knownRedirectHosts = [...]string{
	"claude.ai",
	"claude.com",
	"chatgpt.com",
	"vscode.dev",
	"insiders.vscode.dev",
	"www.cursor.com",
	"www.perplexity.ai",
}

// knownPrivateUseURIs are the exact redirect URIs with a private-use scheme
// that are not reverse-domain names and that clients in wide use register (D12).
var knownPrivateUseURIs = [...]string{
	"cursor://anysphere.cursor-mcp/oauth/callback",
}

// IsKnownRedirectHost reports whether host, in lower case and without port, is
// in the shipped list of known clients' hosts (D32).
func IsKnownRedirectHost(host string) bool { return slices.Contains(knownRedirectHosts[:], host) }
