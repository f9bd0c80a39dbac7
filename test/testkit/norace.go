//go:build !race

package testkit

// Race reports that the race detector is off.
const Race = false
