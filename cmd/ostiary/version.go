package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what the binary knows of itself.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Show the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := readBuild()
			return c.print(cmd, b, func(w io.Writer) {
				_, _ = io.WriteString(w, b.line())
			})
		}}
	addJSON(cmd)
	return cmd
}

// line is the version for people, as version and --version print it.
func (b build) line() string {
	return fmt.Sprintf("ostiary %s (%s, %s)\n", b.Version, b.Go, b.Platform)
}

// readBuild reads what the Go toolchain stamped into the binary.
func readBuild() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
