package migrations

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
)

// Checksum identifies this set of migrations: it changes when a file is added
// or edited. Tests name their template databases after it.
func Checksum() (string, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return "", fmt.Errorf("list migrations: %w", err)
	}
	h := sha256.New()
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return "", fmt.Errorf("read migration: %w", err)
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(b), b)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
