package endpoint

import "net/http"

// LooksOnly answers HEAD with an empty 200 and reports whether it did. HEAD is
// safe (RFC 9110 §9.2.1): a program that only looks at a link makes no request,
// session or code.
func LooksOnly(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodHead {
		return false
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return true
}
