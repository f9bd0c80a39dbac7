// Package doctor breaks one thing at a time in a real Ostiary and an MCP server
// behind a real nginx, and looks whether `ostiary doctor` finds it: faults_test.go
// lists what is broken, by changes of nginx's configuration. It also writes the
// transcripts in docs/doctor.md.
package doctor
