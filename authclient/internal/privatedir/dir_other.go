//go:build !unix

package privatedir

import (
	"io/fs"
	"os"
)

// noFollow is nothing here: look refuses links.
const noFollow = 0

// private leaves it to the rights that the directory's place gives: a user's
// profile is theirs alone on Windows, and modes say nothing.
func private(fs.FileInfo, string, string) error { return nil }

// syncDir does nothing: directories cannot be synced here.
func syncDir(*os.Root) error { return nil }
