package web

import "net/http"

// csp is the policy of every page (pages.md §3). No page has a script in this
// version; form-action stays 'self', see decision D15.
const csp = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'none'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// returnCSP is for the return page, which has no form.
const returnCSP = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'none'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// setHeaders sets the headers of page p. CS-04: no page can be framed.
func (rd *Renderer) setHeaders(h http.Header, p Page) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", csp)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "publickey-credentials-get=(self), publickey-credentials-create=(self), camera=(), microphone=(), geolocation=()")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex")
	// LG-04: same-origin and not no-referrer, with which Chromium sends Origin:
	// null on our own forms.
	h.Set("Referrer-Policy", "same-origin")
	if rd.https {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	switch p.(type) {
	case Return:
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", returnCSP)
	case Account, Disconnect, EndSessions, SetupStart, SetupAccount, SetupServer, SetupDone:
		// Not on the pages of a flow: a client that opened it in a pop-up would
		// lose window.opener for its callback.
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
	}
}
