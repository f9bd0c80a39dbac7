//go:build race

package testkit

// Race reports that the race detector is on. It makes everything about ten times
// slower, so a test that sends a crowd sends a smaller one.
const Race = true
