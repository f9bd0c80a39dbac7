package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/spf13/cobra"
)

func newUserCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "user", Short: "Add and manage people's accounts"}
	cmd.AddCommand(newUserAddCmd(c), newUserListCmd(c), newUserShowCmd(c), newUserUpdateCmd(c), newUserEnableCmd(c),
		newUserDisableCmd(c), newUserSetPasswordCmd(c), newUserRemoveCmd(c))
	return cmd
}

// withAccounts calls fn with the functions that change accounts.
func (c *cli) withAccounts(ctx context.Context, fn func(a *login.Accounts) error) error {
	return c.withCore(ctx, func(_ *config.Config, core *app.Core) error { return fn(core.Accounts) })
}

func newUserAddCmd(c *cli) *cobra.Command {
	var n login.NewUser
	var fromStdin bool
	cmd := &cobra.Command{Use: "add EMAIL", Short: "Add an account; the password comes from a prompt or standard input",
		Args: cobra.ExactArgs(1),
		Example: `  ostiary user add ada@example.com --name "Ada Lovelace" --operator
  pass show ada | ostiary user add ada@example.com --name Ada --password-stdin`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			n.Email = args[0]
			if n.Password, err = c.readSecret("password", "--password-stdin", fromStdin); err != nil {
				return err
			}
			return c.editUser(cmd, n.Email, func(a *login.Accounts) (login.User, error) { return a.Add(cmd.Context(), n) })
		}}
	cmd.Flags().StringVar(&n.Name, "name", "", "`name` that people see")
	cmd.Flags().BoolVar(&n.Operator, "operator", false, "the account may administer this server; ends first-run set-up")
	cmd.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
	addJSON(cmd)
	return cmd
}

func newUserListCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List accounts by e-mail address", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withAccounts(cmd.Context(), func(a *login.Accounts) error {
				users, err := a.List(cmd.Context())
				if err != nil {
					return err
				}
				return c.printUsers(cmd, users)
			})
		}}
	addJSON(cmd)
	return cmd
}

func newUserShowCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "show EMAIL|ID", Short: "Show one account", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.editUser(cmd, args[0], func(a *login.Accounts) (login.User, error) { return a.Get(cmd.Context(), args[0]) })
		}}
	addJSON(cmd)
	return cmd
}

func newUserUpdateCmd(c *cli) *cobra.Command {
	var email, name string
	var operator, force bool
	cmd := &cobra.Command{Use: "update EMAIL|ID", Short: "Change an account's address, name or role", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			change := login.Change{Email: given(cmd, "email", &email), Name: given(cmd, "name", &name),
				Operator: given(cmd, "operator", &operator), Force: force}
			if change.Email == nil && change.Name == nil && change.Operator == nil {
				return usagef("nothing to change: give one of --email, --name, --operator")
			}
			return c.editUser(cmd, args[0], func(a *login.Accounts) (login.User, error) {
				return a.Update(cmd.Context(), args[0], change)
			})
		}}
	cmd.Flags().StringVar(&email, "email", "", "new e-mail `address`")
	cmd.Flags().StringVar(&name, "name", "", "`name` that people see")
	cmd.Flags().BoolVar(&operator, "operator", false, "whether the account may administer this server (--operator=false takes it away)")
	addForce(cmd, &force)
	addJSON(cmd)
	return cmd
}

func newUserEnableCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "enable EMAIL|ID", Short: "Switch an account on again", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.editUser(cmd, args[0], func(a *login.Accounts) (login.User, error) { return a.Enable(cmd.Context(), args[0]) })
		}}
	addJSON(cmd)
	return cmd
}

func newUserDisableCmd(c *cli) *cobra.Command {
	var force bool
	cmd := &cobra.Command{Use: "disable EMAIL|ID", Short: "Switch an account off, sign it out and disconnect its apps",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.editUser(cmd, args[0], func(a *login.Accounts) (login.User, error) {
				return a.Disable(cmd.Context(), args[0], force)
			})
		}}
	addForce(cmd, &force)
	addJSON(cmd)
	return cmd
}

func newUserSetPasswordCmd(c *cli) *cobra.Command {
	var fromStdin bool
	cmd := &cobra.Command{Use: "set-password EMAIL|ID", Short: "Set a new password, sign the account out and disconnect its apps",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			password, err := c.readSecret("password", "--password-stdin", fromStdin)
			if err != nil {
				return err
			}
			return c.editUser(cmd, args[0], func(a *login.Accounts) (login.User, error) {
				return a.SetPassword(cmd.Context(), args[0], password)
			})
		}}
	cmd.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
	addJSON(cmd)
	return cmd
}

func newUserRemoveCmd(c *cli) *cobra.Command {
	var force bool
	cmd := &cobra.Command{Use: "remove EMAIL|ID", Short: "Remove an account, sign it out and disconnect its apps", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withAccounts(cmd.Context(), func(a *login.Accounts) error { return c.removeUser(cmd, a, args[0], force) })
		}}
	addForce(cmd, &force)
	addYes(cmd)
	addJSON(cmd)
	return cmd
}

func (c *cli) removeUser(cmd *cobra.Command, a *login.Accounts, who string, force bool) error {
	user, err := a.Get(cmd.Context(), who)
	if err != nil {
		return userError(who, err)
	}
	if err := c.confirm(cmd, "This removes the account of %s for good, signs it out and disconnects its apps.", user.Email); err != nil {
		return err
	}
	if _, err := a.Remove(cmd.Context(), user.ID, force); err != nil {
		return userError(who, err)
	}
	return c.print(cmd, newUserView(user), func(w io.Writer) { _, _ = fmt.Fprintf(w, "removed %s\n", user.Email) })
}

// addForce defines --force of the verbs that could leave no operator.
func addForce(cmd *cobra.Command, force *bool) {
	cmd.Flags().BoolVar(force, "force", false, "even when this is the last enabled operator")
}

// editUser runs a step on one account and prints what it is now.
func (c *cli) editUser(cmd *cobra.Command, who string, step func(a *login.Accounts) (login.User, error)) error {
	return c.withAccounts(cmd.Context(), func(a *login.Accounts) error {
		user, err := step(a)
		if err != nil {
			return userError(who, err)
		}
		return c.print(cmd, newUserView(user), func(w io.Writer) { table(w, userRows(user)...) })
	})
}

// userView is an account as the command line prints it; never its password's hash.
type userView struct {
	ID                string  `json:"id"`
	Email             string  `json:"email"`
	Name              string  `json:"name,omitempty"`
	Operator          bool    `json:"operator"`
	Enabled           bool    `json:"enabled"`
	HasPassword       bool    `json:"has_password"`
	DisabledAt        instant `json:"disabled_at,omitzero"`
	PasswordChangedAt instant `json:"password_changed_at,omitzero"`
	LastSignInAt      instant `json:"last_sign_in_at,omitzero"`
	CreatedAt         instant `json:"created_at"`
	UpdatedAt         instant `json:"updated_at"`
}

func newUserView(u login.User) userView {
	return userView{ID: u.ID, Email: u.Email, Name: u.Name, Operator: u.Operator, Enabled: u.Enabled(),
		HasPassword: u.PasswordHash != "", DisabledAt: instant{u.DisabledAt}, PasswordChangedAt: instant{u.PasswordChangedAt},
		LastSignInAt: instant{u.LastSignInAt}, CreatedAt: instant{u.CreatedAt}, UpdatedAt: instant{u.UpdatedAt}}
}

func (c *cli) printUsers(cmd *cobra.Command, users []login.User) error {
	views := make([]userView, 0, len(users))
	rows := [][]string{{"EMAIL", "NAME", "ROLE", "STATE", "LAST SIGN-IN", "ID"}}
	for _, u := range users {
		views = append(views, newUserView(u))
		rows = append(rows, []string{u.Email, cmp.Or(u.Name, "-"), userRole(u), userState(u), userSignIn(u), u.ID})
	}
	return c.print(cmd, views, func(w io.Writer) { table(w, rows...) })
}

// userRows are the lines of show, for people.
func userRows(u login.User) [][]string {
	return [][]string{{"id", u.ID}, {"email", u.Email}, {"name", cmp.Or(u.Name, "-")}, {"role", userRole(u)},
		{"state", userState(u)}, {"last sign-in", userSignIn(u)}, {"created", stamp(&instant{u.CreatedAt})}}
}

func userRole(u login.User) string {
	if u.Operator {
		return "operator"
	}
	return "user"
}

func userState(u login.User) string {
	switch {
	case !u.Enabled():
		return "disabled"
	case u.PasswordHash == "":
		return "no password"
	}
	return "enabled"
}

func userSignIn(u login.User) string {
	if u.LastSignInAt.IsZero() {
		return "never"
	}
	return stamp(&instant{u.LastSignInAt})
}

// userError says what to do about an error of login.
func userError(who string, err error) error {
	var mistake *login.Mistake
	switch {
	case errors.Is(err, store.ErrNotFound):
		return withHint(fmt.Errorf("there is no account %q", who), "ostiary user list shows them all")
	case errors.Is(err, store.ErrExists):
		return withHint(errors.New("an account with this e-mail address exists already"), "ostiary user list shows them all")
	case errors.Is(err, login.ErrLastOperator):
		return withHint(err, "make another account an operator first, or add --force")
	case errors.As(err, &mistake) && mistake.Field == "password": // from standard input, not from the command line
		return withHint(err, "nothing was changed; give another password")
	case errors.As(err, &mistake):
		return withHint(usagef("%v", err), "nothing was changed; ostiary user --help lists the commands")
	}
	return err
}
