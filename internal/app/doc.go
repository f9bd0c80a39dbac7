// Package app is the wiring: it turns the configuration into each package's own
// options, in one place that `ostiary serve`, the other commands and the tests
// share. It holds no rule.
package app
