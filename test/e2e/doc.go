// Package e2e holds the tests that need a real browser: how every page looks,
// that axe-core finds nothing in it, and what people do with the pages.
package e2e
