package registration_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

const quillID = "https://quill.example/oauth/client.json"

// addDocumentClient inserts the row of a client known by its metadata document,
// with one person's consent and grant.
func addDocumentClient(t *testing.T, db *sqlstore.Store, id, name string) registration.Client {
	t.Helper()
	c := registration.Client{ID: id, Kind: registration.KindCIMD, CreatedAt: noon, UpdatedAt: noon, DocumentHash: "h1",
		Metadata: registration.ClientMetadata{ClientName: name, RedirectURIs: []string{"http://127.0.0.1/cb"}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}}}
	err := errors.Join(db.CreateClient(t.Context(), c),
		db.PutConsent(t.Context(), consent.Consent{Subject: "mina", ClientID: id, RedirectURI: "http://127.0.0.1/cb", Resource: "r", CreatedAt: noon, UpdatedAt: noon}),
		db.CreateGrant(t.Context(), grant.Grant{ID: "grant of " + id, ClientID: id, Subject: "mina", Resource: "r", Salt: []byte("salt"), Generation: 3, CreatedAt: noon,
			CodeExpiresAt: noon, RefreshExpiresAt: noon.Add(time.Hour), ExpiresAt: noon.Add(time.Hour)}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// held reports what people allowed the client and what it holds.
func held(t *testing.T, db *sqlstore.Store, id string) (consents, grants bool) {
	t.Helper()
	consents, err := db.HasConsent(t.Context(), "mina", id, "http://127.0.0.1/cb")
	if err != nil {
		t.Fatal(err)
	}
	g, err := db.GetGrant(t.Context(), "grant of "+id)
	if err != nil {
		t.Fatal(err)
	}
	return consents, g.EndedAt.IsZero()
}

func TestVerify(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, a := t.Context(), newAdmin(db)
		c := addDocumentClient(t, db, quillID, "Quill Desktop")
		if consent.MayRemember(&c, "http://127.0.0.1/cb") {
			t.Fatal("CI-18: remembered before it is verified")
		}
		got, err := a.Verify(ctx, quillID, "h1")
		if err != nil || !got.VerifiedAt.Equal(noon) || !got.Trusted() || !consent.MayRemember(&got, "http://127.0.0.1/cb") || got.DocumentHash != "h1" {
			t.Errorf("Verify: %+v, %v", got, err)
		}
		a.Now = func() time.Time { return noon.Add(time.Hour) }
		if got, err = a.Verify(ctx, quillID, "h1"); err != nil || !got.VerifiedAt.Equal(noon) {
			t.Errorf("Verify again: %v, %v", got.VerifiedAt, err)
		}
		if want := []string{"client.verified", "client.verified"}; !slices.Equal(events(t, db), want) {
			t.Errorf("D35: events %q, want %q", events(t, db), want)
		}
		for _, off := range []func() error{
			func() error { _, err := a.Disable(ctx, quillID); return err },
			func() error { _, err := a.Block(ctx, quillID); return err },
		} {
			if err := off(); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Verify(ctx, quillID, "h1"); !errors.Is(err, registration.ErrOff) {
				t.Errorf("Verify of a client that is off: %v", err)
			}
		}
		if want := []string{"client.blocked", "client.disabled", "client.verified", "client.verified"}; !slices.Equal(events(t, db), want) {
			t.Errorf("D35: events %q, want %q: a refused change leaves none", events(t, db), want)
		}
	})
}

func TestBlock(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, a := t.Context(), newAdmin(db)
		const otherID = "https://other.example/client.json"
		addDocumentClient(t, db, quillID, "Quill Desktop")
		addDocumentClient(t, db, otherID, "Other")
		if _, err := a.Verify(ctx, quillID, "h1"); err != nil {
			t.Fatal(err)
		}
		if n, err := a.Block(ctx, quillID); err != nil || n != 1 {
			t.Fatalf("Block: %d, %v", n, err)
		}
		blocked, err := a.Show(ctx, quillID)
		if err != nil || blocked.Enabled() || blocked.Trusted() || !blocked.BlockedAt.Equal(noon) {
			t.Errorf("after Block: %+v, %v", blocked, err)
		}
		if consents, grants := held(t, db, quillID); consents || grants {
			t.Errorf("after Block: consent %t, live grant %t", consents, grants)
		}
		if consents, grants := held(t, db, otherID); !consents || !grants {
			t.Errorf("another client: consent %t, live grant %t", consents, grants)
		}
		if g, err := db.GetGrant(ctx, "grant of "+quillID); err != nil || g.EndReason != grant.ReasonBlocked || len(g.Salt) != 0 {
			t.Errorf("grant %+v, %v", g, err)
		}
		t.Run("nothing is issued behind it", func(t *testing.T) {
			if err := db.TouchClient(ctx, quillID, noon); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("TouchClient: %v, want ErrNotFound", err)
			}
		})
		t.Run("stays when the document is read again", func(t *testing.T) {
			changed := blocked
			changed.Metadata.ClientName, changed.DocumentHash = "Quill 2", "h2"
			if err := db.UpdateClient(ctx, changed); err != nil {
				t.Fatal(err)
			}
			if got, err := a.Show(ctx, quillID); err != nil || got.Enabled() {
				t.Errorf("%+v, %v", got, err)
			}
		})
		t.Run("cannot be enabled", func(t *testing.T) {
			if _, err := a.Enable(ctx, quillID); !errors.Is(err, registration.ErrBlocked) {
				t.Errorf("Enable: %v, want ErrBlocked", err)
			}
			if got, err := a.Show(ctx, quillID); err != nil || got.Enabled() {
				t.Errorf("%+v, %v", got, err)
			}
		})
		t.Run("stays disabled when unblocked", func(t *testing.T) {
			if _, err := a.Disable(ctx, quillID); err != nil {
				t.Fatal(err)
			}
			if got, err := a.Unblock(ctx, quillID); err != nil || got.Enabled() || !got.BlockedAt.IsZero() {
				t.Errorf("%+v, %v", got, err)
			}
			got, err := a.Enable(ctx, quillID)
			if err != nil || !got.Enabled() || got.Trusted() {
				t.Errorf("%+v, %v", got, err)
			}
		})
		if consents, grants := held(t, db, quillID); consents || grants {
			t.Errorf("after Unblock: consent %t, live grant %t; nothing comes back", consents, grants)
		}
		want := []string{"client.blocked", "client.disabled", "client.enabled", "client.unblocked", "client.verified"}
		if got := events(t, db); !slices.Equal(got, want) {
			t.Errorf("D35: events %q, want %q", got, want)
		}
	})
}

// Who vouches for a client vouches for what it was when they looked: its document
// may be read again, or it may update itself, before their word arrives.
func TestVerifyOfAClientThatChanged(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, a := t.Context(), newAdmin(db)
		seen := addDocumentClient(t, db, quillID, "Quill Desktop")
		changed := seen
		changed.Metadata.RedirectURIs, changed.DocumentHash = []string{"https://evil.example/cb"}, "h2"
		if err := db.UpdateClient(ctx, changed); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Verify(ctx, quillID, seen.DocumentHash); !errors.Is(err, registration.ErrChanged) {
			t.Errorf("Verify of what it was: %v, want ErrChanged", err)
		}
		if got, err := a.Show(ctx, quillID); err != nil || got.Trusted() || len(events(t, db)) != 0 {
			t.Errorf("after it: %+v, %v; events %q", got, err, events(t, db))
		}
		if got, err := a.Verify(ctx, quillID, changed.DocumentHash); err != nil || !got.Trusted() {
			t.Errorf("Verify of what it is: %+v, %v", got, err)
		}
	})
}

func TestTrustOfUnknownClients(t *testing.T) {
	t.Parallel()
	a := newAdmin(testkit.OpenSQLite(t))
	for _, id := range []string{"nobody", "https://nobody.example/client.json", "a\x00b", ""} {
		_, verify := a.Verify(t.Context(), id, "h1")
		_, block := a.Block(t.Context(), id)
		_, unblock := a.Unblock(t.Context(), id)
		for name, err := range map[string]error{"Verify": verify, "Block": block, "Unblock": unblock} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s(%q): %v, want ErrNotFound", name, id, err)
			}
		}
	}
}

// What a metadata document says cannot be changed here; which MCP servers its
// client may use can.
func TestUpdateOfADocumentClient(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	a := newAdmin(db)
	addDocumentClient(t, db, quillID, "Quill Desktop")
	name, resources := "Better Quill", []string{"https://MCP.example/"}
	if _, err := a.Update(t.Context(), quillID, registration.UpdateOptions{Name: &name, Resources: &resources}); oauth.Code(err) != "invalid_client_metadata" {
		t.Errorf("a new name: %v", err)
	}
	got, err := a.Update(t.Context(), quillID, registration.UpdateOptions{Resources: &resources})
	if err != nil || !slices.Equal(got.Resources, []string{"https://mcp.example"}) || got.DocumentHash != "h1" || got.Metadata.ClientName != "Quill Desktop" {
		t.Errorf("resources: %+v, %v", got, err)
	}
}

func TestAdminLooksLike(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	a := newAdmin(db)
	addDocumentClient(t, db, quillID, "Quill Desktop")
	c := addDocumentClient(t, db, "https://zz.example/client.json", "QuiII Desktop")
	if got, err := a.LooksLike(t.Context(), c); err != nil || got.Of != "Quill Desktop" {
		t.Errorf("LooksLike: %+v, %v", got, err)
	}
	c.VerifiedAt = noon
	if got, err := a.LooksLike(t.Context(), c); err != nil || got.Of != "Quill Desktop" {
		t.Errorf("LooksLike of a verified one, for the operator: %+v, %v", got, err)
	}
}
