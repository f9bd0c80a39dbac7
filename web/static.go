package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strings"
)

//go:embed static/*
var staticFiles embed.FS

// staticFile is one file that browsers keep for ever: its name has its hash.
type staticFile struct {
	path        string // below the issuer's path, "/static/style.0123abcd.css"
	contentType string
	body        []byte
}

func loadStatic() (map[string]staticFile, error) {
	files := map[string]staticFile{}
	for name, contentType := range map[string]string{
		"style.css": "text/css; charset=utf-8", "favicon.svg": "image/svg+xml",
	} {
		body, err := staticFiles.ReadFile("static/" + name)
		if err != nil {
			return nil, fmt.Errorf("web: static file: %w", err)
		}
		sum := sha256.Sum256(body)
		ext := path.Ext(name)
		files[name] = staticFile{
			path:        "/static/" + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:8]) + ext,
			contentType: contentType, body: body,
		}
	}
	return files, nil
}

// Routes adds the static files to the mux of pages.
func (rd *Renderer) Routes(pages, _ *http.ServeMux) {
	for _, f := range rd.static {
		pages.Handle("GET "+f.path, serveFile(f, "public, max-age=31536000, immutable"))
	}
	// Browsers ask for this one by themselves.
	pages.Handle("GET /favicon.ico", serveFile(rd.static["favicon.svg"], "public, max-age=86400"))
}

func serveFile(f staticFile, cacheControl string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", f.contentType)
		h.Set("Cache-Control", cacheControl)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		// An SVG opened by itself is a document: it may do nothing.
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		// A HEAD request drops the body, and a failed write has nobody to tell.
		_, _ = w.Write(f.body)
	})
}
