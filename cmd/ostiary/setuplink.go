package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/spf13/cobra"
)

func newSetupLinkCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "setup-link", Short: "Print a link that opens first-run set-up: good for 60 minutes and one use",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withCore(cmd.Context(), func(_ *config.Config, core *app.Core) error { return c.printSetupLink(cmd, core.Setup) })
		}}
	addJSON(cmd)
	return cmd
}

func (c *cli) printSetupLink(cmd *cobra.Command, links *login.SetupLinks) error {
	_, link, err := links.New(cmd.Context())
	if errors.Is(err, login.ErrOperatorExists) {
		return withHint(err, "sign in with it, or reset its password: ostiary user set-password EMAIL")
	}
	if err != nil {
		return err
	}
	return c.print(cmd, map[string]string{"url": link}, func(w io.Writer) { _, _ = fmt.Fprintln(w, link) })
}
