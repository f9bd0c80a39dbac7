// Package upgrade holds the test that opens the databases of earlier versions:
// everything people and clients held before must work after. testdata has one
// fixture a release, written by that release with
//
//	go test ./test/upgrade -run TestUpgrade -update v0.3.0
//
// before its tag (D24).
package upgrade
