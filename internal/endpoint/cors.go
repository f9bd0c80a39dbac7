package endpoint

import (
	"net/http"
	"time"

	"github.com/rs/cors"
)

// CORS lets pages of any origin call next with the given methods (rule A7):
// Access-Control-Allow-Origin is *, on errors too, and credentials are never
// allowed (TK-10), so a browser sends no cookie and next must not want one.
// OPTIONS is answered with 204, whether it is a preflight or not; next never
// sees it, but its route must admit the method. It is for client endpoints;
// pages never have it.
func CORS(next http.Handler, methods ...string) http.Handler {
	c := cors.New(cors.Options{
		AllowedOrigins: []string{"*"},
		AllowedMethods: methods,
		AllowedHeaders: []string{"Authorization", "Content-Type", "Accept", "MCP-Protocol-Version"},
		// a browser's client reads why it was refused, and when to try again
		ExposedHeaders: []string{"WWW-Authenticate", "Retry-After"},
		MaxAge:         int((10 * time.Minute).Seconds()),
	})
	return c.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// rs/cors sets it only when the request names an origin; a cache that
		// kept such an answer would then serve it to browsers
		w.Header().Set("Access-Control-Allow-Origin", "*")
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	}))
}
