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

// knownApp is a client in wide use: the name people know it by, and the sites
// that it comes from. Another site with that name looks like it.
type knownApp struct {
	name  string
	sites []string
}

// knownApps are the clients in wide use whose sites are known.
var knownApps = [...]knownApp{
	{"Claude", []string{"claude.ai", "claude.com", "anthropic.com"}},
	{"Claude Code", []string{"claude.ai", "claude.com", "anthropic.com"}},
	{"ChatGPT", []string{"chatgpt.com", "openai.com"}},
	{"OpenAI", []string{"chatgpt.com", "openai.com"}},
	{"Codex", []string{"chatgpt.com", "openai.com"}},
	{"Visual Studio Code", []string{"vscode.dev", "visualstudio.com"}},
	{"VS Code", []string{"vscode.dev", "visualstudio.com"}},
	{"GitHub Copilot", []string{"vscode.dev", "visualstudio.com", "github.com"}},
	{"Cursor", []string{"cursor.com"}},
	{"Zed", []string{"zed.dev"}},
	{"Goose", []string{"goose-docs.ai"}},
	{"opencode", []string{"opencode.ai"}},
	{"Perplexity", []string{"perplexity.ai"}},
}

// IsKnownRedirectHost reports whether host, in lower case and without port, is
// in the shipped list of known clients' hosts (D32).
func IsKnownRedirectHost(host string) bool { return slices.Contains(knownRedirectHosts[:], host) }

// IsKnownRedirect reports whether a redirect URI is https on a host of that list.
func IsKnownRedirect(uri string) bool { return isHTTPS(uri) && IsKnownRedirectHost(hostOf(uri)) }
