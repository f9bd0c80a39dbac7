//go:build unix

package filestore_test

func runClient(string) error { return nil }
