package oauth

// IsDangerousScheme names schemes that run code, read files or embed content
// (A10, RU-12), or that a browser resolves itself; nobody may register them.
func IsDangerousScheme(scheme string) bool {
	switch scheme {
	case "javascript", "data", "vbscript", "file", "blob", "about", "filesystem", "view-source", "jar",
		"ws", "wss", "ftp", "ftps", "mailto", "tel", "sms", "intent", "content", "resource", "res", "mhtml",
		"chrome", "chrome-extension", "moz-extension", "ms-browser-extension", "edge", "opera", "brave":
		return true
	}
	return false
}
