package main

import "github.com/ostiary-auth/ostiary/internal/printable"

// maxLine bounds what is printed of a foreign text that should be one line, in bytes.
const maxLine = 1000

// terminalLine is what is printed of a foreign text that should be one line. Nothing of
// a server is printed but by it or by the rest of package printable.
func terminalLine(s string) string { return printable.Line(s, maxLine) }
