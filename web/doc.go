// Package web is how pages look: templates, the style sheet, the catalogue of
// every sentence, the headers that each page carries, and the static files. It
// decides nothing: a handler fills a Page and Renderer writes it.
package web
