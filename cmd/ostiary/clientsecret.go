package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/spf13/cobra"
)

// defaultKeepOld is how long a rotated secret stays good when nothing is said:
// time to change every machine in a working week.
const defaultKeepOld = 7 * day

// secretSource is where a secret comes from that an earlier system made: never
// the command line, which other users of the machine can see (D18).
type secretSource struct {
	stdin bool
	file  string
}

func (s *secretSource) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.stdin, "secret-stdin", false, "read an earlier system's secret from standard input: 32 to 256 characters that look random (default a new one)")
	cmd.Flags().StringVar(&s.file, "secret-file", "", "read it from a `file`")
	cmd.MarkFlagsMutuallyExclusive("secret-stdin", "secret-file")
}

// read returns the secret given, "" when none was.
func (s *secretSource) read(c *cli) (oauth.Secret, error) {
	switch {
	case s.stdin:
		return c.readSecretLine(c.in, "secret")
	case s.file == "":
		return "", nil
	}
	f, err := os.Open(s.file)
	if err != nil {
		return "", withHint(err, "name a file that this user can read")
	}
	defer func() { _ = f.Close() }()
	return c.readSecretLine(f, "secret")
}

// rotation are the flags of rotate-secret.
type rotation struct {
	until       string
	keep        time.Duration
	now, endOld bool
	given       secretSource
}

func newClientRotateSecretCmd(c *cli) *cobra.Command {
	r := rotation{keep: defaultKeepOld}
	cmd := &cobra.Command{Use: "rotate-secret CLIENT_ID", Short: "Give a client a new secret, printed once; the old one stays good for a while",
		Args: cobra.ExactArgs(1),
		Long: `Give a client a new secret and print it once. The old secret stays good beside it
for seven days, or as long as you say, so that machines can be changed one after
the other. What people allowed the client stays.

--now ends every earlier secret at once: for one that may be known to others.
--end-old ends the old one early and makes no new secret.`,
		Example: `  ostiary client rotate-secret oqv4mfvw3k6zvb2j7c5xq3n4ya --keep-old 48h
  ostiary client rotate-secret oqv4mfvw3k6zvb2j7c5xq3n4ya --until 2027-01-31
  ostiary client rotate-secret oqv4mfvw3k6zvb2j7c5xq3n4ya --now`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.rotateSecret(cmd, args[0], r)
		}}
	r.flags(cmd)
	r.given.flags(cmd)
	cmd.MarkFlagsMutuallyExclusive("keep-old", "until", "now", "end-old")
	cmd.MarkFlagsMutuallyExclusive("end-old", "secret-stdin")
	cmd.MarkFlagsMutuallyExclusive("end-old", "secret-file")
	addYes(cmd)
	addJSON(cmd)
	return cmd
}

func (c *cli) rotateSecret(cmd *cobra.Command, id string, r rotation) error {
	until, err := r.oldUntil(c.now())
	if err != nil {
		return err
	}
	secret, err := r.given.read(c)
	if err != nil {
		return err
	}
	if r.now || r.endOld {
		if err := c.confirm(cmd, "Every machine that still uses the old secret of %s is refused from now on.", id); err != nil {
			return err
		}
	}
	return c.withClients(cmd.Context(), func(a *registration.Admin) error {
		if r.endOld {
			client, err := a.EndOldSecret(cmd.Context(), id)
			return c.printEdited(cmd, id, client, rotationError(err))
		}
		client, made, err := a.RotateSecret(cmd.Context(), id, registration.RotateOptions{Rotation: oauth.Rotation{OldUntil: until, Drop: r.now}, Secret: secret})
		if err != nil {
			return clientError(id, rotationError(err))
		}
		return c.printRotated(cmd, client, made)
	})
}

// flags are those about the old secret.
func (r *rotation) flags(cmd *cobra.Command) {
	fs := cmd.Flags()
	daysVar(fs, &r.keep, "keep-old", "how long the old secret stays good, a `duration` like 48h or 14d")
	fs.StringVar(&r.until, "until", "", "until when it stays good, a `date` (its beginning, UTC) or a time like 2027-01-31T18:00:00Z")
	fs.BoolVar(&r.now, "now", false, "end every earlier secret at once")
	fs.BoolVar(&r.endOld, "end-old", false, "make no new secret, only end the old one")
}

// oldUntil is until when the old secret stays good, the zero time for no longer.
func (r *rotation) oldUntil(now time.Time) (time.Time, error) {
	switch {
	case r.now, r.endOld:
		return time.Time{}, nil
	case r.until != "":
		for _, layout := range []string{time.DateOnly, time.RFC3339} {
			t, err := time.Parse(layout, r.until)
			if err != nil {
				continue
			}
			if !t.After(now) {
				return t, withHint(usagef("--until %s is in the past", r.until), "--now ends the old secret at once")
			}
			return t, nil
		}
		return time.Time{}, withHint(usagef("--until %q is neither a date nor a time", r.until), "write 2027-01-31 or 2027-01-31T18:00:00Z")
	case r.keep <= 0:
		return time.Time{}, withHint(usagef("--keep-old must be more than 0"), "--now ends the old secret at once")
	}
	return now.Add(r.keep), nil
}

func rotationError(err error) error {
	var oe *oauth.Error
	switch {
	case errors.Is(err, oauth.ErrSecretRotating):
		return withHint(err, "wait, or end it with --end-old; --now ends every earlier secret and makes a new one")
	case errors.Is(err, oauth.ErrNoOldSecret):
		return withHint(err, "nothing was changed")
	case errors.Is(err, registration.ErrUnfit) && errors.As(err, &oe):
		return withHint(errors.New(oe.Description), "nothing was changed; ostiary client show tells how a client authenticates")
	case errors.As(err, &oe) && oe.HTTPStatus() < 500:
		return withHint(usagef("%s", oe.Description), "nothing was changed; ostiary client rotate-secret --help shows the flags")
	}
	return err
}

func (c *cli) printRotated(cmd *cobra.Command, client registration.Client, secret oauth.Secret) error {
	view := struct {
		ClientID           string  `json:"client_id"`
		ClientSecret       string  `json:"client_secret,omitempty"`
		OldSecretExpiresAt instant `json:"old_secret_expires_at,omitzero"`
	}{client.ID, secret.Reveal(), instant{client.OldSecretExpiresAt}}
	return c.print(cmd, view, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "client_id      %s\n", client.ID)
		if secret != "" {
			_, _ = fmt.Fprintf(w, "client_secret  %s\n", secret.Reveal())
			_, _ = fmt.Fprintln(c.err, "Keep the secret now: it is not shown again.")
		}
		c.tellOldSecret(client.HasOldSecret(c.now()), client.OldSecretExpiresAt)
	})
}
