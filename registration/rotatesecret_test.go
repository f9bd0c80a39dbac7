package registration_test

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestCA07_RotateSecret(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, a, now := t.Context(), newAdmin(db), noon
		a.Now = func() time.Time { return now }
		c, first, err := a.Add(ctx, registration.AddOptions{Name: "Atlas", RedirectURIs: []string{"https://atlas.example/cb"}, AuthMethod: "client_secret_basic"})
		if err != nil {
			t.Fatal(err)
		}
		until := noon.Add(time.Hour)
		rotated, second, err := a.RotateSecret(ctx, c.ID, registration.RotateOptions{Rotation: oauth.Rotation{OldUntil: until}})
		if err != nil || len(second.Reveal()) != 43 || second == first || rotated.DocumentHash != c.DocumentHash {
			t.Fatalf("RotateSecret: %+v %v", rotated, err)
		}
		good := func(step string, secret oauth.Secret, want bool) {
			t.Helper()
			stored, err := db.GetClient(ctx, c.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got := stored.CheckSecret(secret, now); got != want {
				t.Errorf("%s: CheckSecret = %t, want %t", step, got, want)
			}
		}
		good("side by side: old", first, true)
		good("side by side: new", second, true)
		good("side by side: neither", second+"x", false)
		good("side by side: none", "", false)
		if _, _, err := a.RotateSecret(ctx, c.ID, registration.RotateOptions{Rotation: oauth.Rotation{OldUntil: until}}); !errors.Is(err, oauth.ErrSecretRotating) {
			t.Errorf("a second rotation would end the first secret unsaid: %v", err)
		}
		now = until.Add(-time.Millisecond)
		good("the last moment", first, true)
		now = until
		good("CA-07 the date has come: old", first, false)
		good("CA-07 the date has come: new", second, true)
		if _, err := a.EndOldSecret(ctx, c.ID); !errors.Is(err, oauth.ErrNoOldSecret) {
			t.Errorf("EndOldSecret without one: %v", err)
		}

		_, third, err := a.RotateSecret(ctx, c.ID, registration.RotateOptions{Rotation: oauth.Rotation{OldUntil: now.Add(time.Hour)}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.EndOldSecret(ctx, c.ID); err != nil {
			t.Fatal(err)
		}
		good("ended early: old", second, false)
		good("ended early: new", third, true)

		_, fourth, err := a.RotateSecret(ctx, c.ID, registration.RotateOptions{Rotation: oauth.Rotation{OldUntil: now.Add(time.Hour)}})
		if err != nil {
			t.Fatal(err)
		}
		_, fifth, err := a.RotateSecret(ctx, c.ID, registration.RotateOptions{Rotation: oauth.Rotation{Drop: true}})
		if err != nil {
			t.Fatal(err)
		}
		for step, secret := range map[string]oauth.Secret{"the third": third, "the fourth": fourth} {
			good("CA-07 all at once: "+step, secret, false)
		}
		good("all at once: the new one", fifth, true)
		want := []string{"client.added", "client.old_secret_ended", "client.secret_rotated", "client.secret_rotated", "client.secret_rotated", "client.secret_rotated"}
		if got := events(t, db); !slices.Equal(got, want) {
			t.Errorf("D35 events %q, want %q", got, want)
		}
	})
}

func TestRotateSecretRefuses(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), testkit.OpenSQLite(t)
	a := newAdmin(db)
	uris := []string{"https://atlas.example/cb"}
	public, _, err := a.Add(ctx, registration.AddOptions{Name: "Public", RedirectURIs: uris})
	if err != nil {
		t.Fatal(err)
	}
	c, secret, err := a.Add(ctx, registration.AddOptions{Name: "Atlas", RedirectURIs: uris, AuthMethod: "client_secret_post"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, id, code, says string
		o                    registration.RotateOptions
	}{
		{"public client", public.ID, "invalid_client_metadata", "has no secret", registration.RotateOptions{}},
		{"too long", c.ID, "invalid_request", "365 days", registration.RotateOptions{Rotation: oauth.Rotation{OldUntil: noon.Add(oauth.MaxKeepOld + time.Second)}}},
		{"the same secret", c.ID, "invalid_client_metadata", "is the one", registration.RotateOptions{Secret: secret}},
		{"a weak secret", c.ID, "invalid_client_metadata", "32 to 256", registration.RotateOptions{Secret: "hunter2"}},
	} {
		if _, made, err := a.RotateSecret(ctx, tt.id, tt.o); oauth.Code(err) != tt.code || !strings.Contains(err.Error(), tt.says) || made != "" {
			t.Errorf("%s: %v, want an error that says %q", tt.name, err, tt.says)
		}
	}
	if _, _, err := a.RotateSecret(ctx, "abcdefghijklmnopqrstuvwxyz", registration.RotateOptions{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("unknown client: %v", err)
	}
	if stored, err := db.GetClient(ctx, c.ID); err != nil || !stored.CheckSecret(secret, noon) || stored.OldSecretHash != nil {
		t.Errorf("a refused rotation changed the client: %+v (%v)", stored, err)
	}
}

// A secret that would have ended is not given more life by a rotation.
func TestCA07_RotationKeepsTheEnd(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), testkit.OpenSQLite(t)
	a := newAdmin(db)
	c, first, err := a.Add(ctx, registration.AddOptions{Name: "Atlas", RedirectURIs: []string{"https://atlas.example/cb"}, AuthMethod: "client_secret_post"})
	if err != nil {
		t.Fatal(err)
	}
	c.SecretExpiresAt = noon.Add(time.Minute)
	if err := db.UpdateClient(ctx, c); err != nil {
		t.Fatal(err)
	}
	c, second, err := a.RotateSecret(ctx, c.ID, registration.RotateOptions{Rotation: oauth.Rotation{OldUntil: noon.Add(time.Hour)}})
	if err != nil {
		t.Fatal(err)
	}
	later := noon.Add(2 * time.Minute)
	if c.CheckSecret(first, later) || !c.CheckSecret(second, later) || !c.CheckSecret(first, noon) {
		t.Errorf("old until %s, new until %s", c.OldSecretExpiresAt, c.SecretExpiresAt)
	}
}

func TestCheckImportedSecret(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, secret, says string }{
		{"31 characters", "Vb3xT9qLw0ZsR7nKc5YpHd2MfGj8EaU", "it has 31"},
		{"empty", "", "it has 0"},
		{"257 characters", strings.Repeat("Vb3xT9qLw0ZsR7nKc5YpHd2MfGj8EaUo", 9), "32 to 256"},
		{"space", "Vb3xT9qLw0ZsR7nKc5Y Hd2MfGj8EaUo", "visible ASCII"},
		{"line break", "Vb3xT9qLw0ZsR7nKc5Y\nHd2MfGj8EaUo", "visible ASCII"},
		{"not ASCII", "Vb3xT9qLw0ZsR7nKc5YéHd2MfGj8EaUo", "visible ASCII"},
		{"one character", strings.Repeat("a", 40), "repeats itself"},
		{"a word again and again", strings.Repeat("s3cr3tX!", 5), "repeats itself"},
		{"half of it twice", strings.Repeat("Vb3xT9qLw0ZsR7nK", 2), "repeats itself"},
		{"a sequence", "abcdefghijklmnopqrstuvwxyz0123456789", "repeats itself"},
		{"sequences", "0123456789abcdef0123456789abcdef", "repeats itself"},
		{"two letters", "abbabaabbaababbabaababbaabbabaab", "repeats itself"},
		{"rows of a keyboard", "qwertyuiopasdfghjklzxcvbnmqwertyuiop", "follows the keyboard"},
		{"rows of a keyboard, with digits", "1234567890qwertyuiopasdfghjklzxcvbnm", "follows the keyboard"},
		{"rows of a keyboard, in two cases", "QWERTYUIOPasdfghjklZXCVBNMqwertyuiop", "follows the keyboard"},
		{"rows of a keyboard, backwards", "0987654321Poiuytrewqlkjhgfdsamnbvcxz", "follows the keyboard"},
		{"columns of a keyboard", "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9OL.", "follows the keyboard"},
		{"another keyboard", "Azertyuiopqsdfghjklmwxcvbn1234567890", "follows the keyboard"},
		{"a keyboard and its shift", "!@#$%^&*()qwertyuiop1234567890ASDFGH", "follows the keyboard"},
		{"letters of one case", "vbgxtqqlwizsrwnkcmyphdymfgjceauozkfe", "letters of one case"},
		{"digits alone", "8392047165029384756109283746501293847596", "no letters"},
		{"words", "CorrectHorseBatteryStaple-2024!!xx", "words"},
		{"more words", "my-very-secret-production-password-1", "words"},
		{"words of another language", "DasIstEinSehrGeheimesPasswort12345!", "words"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := registration.CheckImportedSecret(oauth.Secret(tt.secret))
			if oauth.Code(err) != "invalid_client_metadata" || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want an error that says %q", err, tt.says)
			}
			if err != nil && tt.secret != "" && strings.Contains(err.Error(), tt.secret) {
				t.Error("the error repeats the secret")
			}
		})
	}
	for name, encode := range map[string]func([]byte) string{
		"hex": hex.EncodeToString, "base64": base64.StdEncoding.EncodeToString, "base64url": base64.RawURLEncoding.EncodeToString,
		"base32": base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString,
		"uuid": func(b []byte) string {
			return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
		},
	} {
		refused := 0
		const tries = 500
		for range tries {
			b := make([]byte, 24)
			_, _ = rand.Read(b)
			if registration.CheckImportedSecret(oauth.Secret(encode(b))) != nil {
				refused++
			}
		}
		if refused > tries/50 {
			t.Errorf("%s: %d of %d random secrets are refused", name, refused, tries)
		}
	}
}

func FuzzCheckImportedSecret(f *testing.F) {
	for _, s := range []string{"", "a", "Vb3xT9qLw0ZsR7nKc5YpHd2MfGj8EaUo", strings.Repeat("ab", 64), "\x00\xff", strings.Repeat("é", 20)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if err := registration.CheckImportedSecret(oauth.Secret(s)); err == nil && (len(s) < 32 || len(s) > 256) {
			t.Errorf("%q was accepted", s)
		}
	})
}
