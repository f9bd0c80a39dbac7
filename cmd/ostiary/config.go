package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/spf13/cobra"
)

func newConfigCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check or show the configuration"}
	cmd.AddCommand(newConfigCheckCmd(c), newConfigPrintCmd(c))
	return cmd
}

func newConfigCheckCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "check", Short: "Report every mistake in the configuration", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.checkConfig() }}
	c.settings(cmd.Flags(), serveSettings)
	return cmd
}

func (c *cli) checkConfig() error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings() {
		_, _ = fmt.Fprintln(c.err, "ostiary: warning:", w)
	}
	_, err = fmt.Fprintf(c.out, "configuration is good: issuer %s, %s\n", cfg.Issuer, mode(cfg))
	return err
}

func mode(cfg *config.Config) string {
	if cfg.Dev() {
		return "development mode (the issuer is on loopback)"
	}
	return "production mode"
}

func newConfigPrintCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "print", Short: "Show each setting and where it came from, without secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.printConfig(cmd) }}
	c.settings(cmd.Flags(), serveSettings)
	addJSON(cmd)
	return cmd
}

// printConfig shows the configuration even when it is wrong: that is when one looks.
func (c *cli) printConfig(cmd *cobra.Command) error {
	cfg, bad := c.config()
	values := cfg.Values()
	asJSON := map[string]map[string]string{"mode": {"value": mode(cfg), "origin": "issuer"}}
	for _, v := range values {
		asJSON[v.Key] = map[string]string{"value": v.Text, "origin": v.Origin.String()}
	}
	if err := c.print(cmd, asJSON, func(w io.Writer) { writeConfig(w, mode(cfg), values) }); err != nil {
		return err
	}
	return bad
}

func writeConfig(w io.Writer, mode string, values []config.Value) {
	_, _ = fmt.Fprintf(w, "# %s\n", mode)
	for _, v := range values {
		_, _ = fmt.Fprintf(w, "%s: %s  # %s\n", v.Key, yamlScalar(v.Text), v.Origin)
	}
}

// yamlScalar quotes what is not plainly a number, a boolean or a duration.
func yamlScalar(s string) string {
	if _, err := strconv.ParseInt(s, 10, 64); err == nil {
		return s
	}
	if _, err := time.ParseDuration(s); err == nil || s == "true" || s == "false" {
		return s
	}
	return strconv.Quote(s)
}
