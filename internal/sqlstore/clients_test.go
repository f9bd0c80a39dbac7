package sqlstore_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// fullClient returns a client none of whose fields is zero, so that a forgotten
// column shows.
func fullClient(t *testing.T, id string, at time.Time) registration.Client {
	t.Helper()
	c := registration.Client{
		ID: id, Kind: registration.KindDynamic,
		Metadata: registration.ClientMetadata{
			RedirectURIs: []string{"http://localhost/cb", "com.example.app:/cb"}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code"}, ResponseTypes: []string{"code"}, ClientName: "Quill 'Desktop' \"é\"",
			ClientURI: "https://quill.example", LogoURI: "https://quill.example/l", TosURI: "https://quill.example/t",
			PolicyURI: "https://quill.example/p", Scope: "a b", Contacts: []string{"ops@quill.example"},
			ApplicationType: "native", SoftwareID: "quill", SoftwareVersion: "1.2", SoftwareStatement: "e30.e30.eA",
			OtherAuthMethods: []string{"none"}, JWKS: []byte(`{"keys":[]}`), JWKSURI: "https://quill.example/jwks", TokenEndpointAuthSigningAlg: "ES256",
		},
		StoredSecret: oauth.StoredSecret{SecretHash: []byte{0, 1, 2, 0xff}, SecretExpiresAt: at.Add(time.Hour),
			OldSecretHash: []byte{3, 4}, OldSecretExpiresAt: at.Add(6 * time.Hour)},
		Resources: []string{"https://mcp.example"},
		Source:    "192.0.2.1", VerifiedAt: at.Add(2 * time.Hour), DisabledAt: at.Add(3 * time.Hour), DocumentHash: "hash",
		RegistrationTokenHash: []byte{5}, BlockedAt: at.Add(7 * time.Hour),
		VerifiedUntil: at.Add(8 * time.Hour),
		CreatedAt:     at, UpdatedAt: at.Add(4 * time.Hour), LastUsedAt: at.Add(5 * time.Hour),
	}
	requireFull(t, reflect.ValueOf(c), "Client")
	return c
}

// requireFull fails for every zero field of a struct, and of structs inside.
func requireFull(t *testing.T, v reflect.Value, name string) {
	t.Helper()
	for i := range v.NumField() {
		field := name + "." + v.Type().Field(i).Name
		if v.Field(i).IsZero() {
			t.Fatalf("%s is zero: fill it, so that the store is asked to keep it", field)
		}
		if f := v.Field(i); f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[time.Time]() {
			requireFull(t, f, field)
		}
	}
}

func TestClients(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 123e6, time.UTC)
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx := t.Context()
		full := fullClient(t, "full", at)
		bare := registration.Client{ID: "bare", Kind: registration.KindOperator, CreatedAt: at.Add(time.Minute), UpdatedAt: at.Add(time.Minute)}
		for _, c := range []registration.Client{full, bare} {
			if err := db.CreateClient(ctx, c); err != nil {
				t.Fatal(err)
			}
			if got, err := db.GetClient(ctx, c.ID); err != nil || !cmp.Equal(got, c) {
				t.Errorf("GetClient(%q): %v\n%s", c.ID, err, cmp.Diff(c, got))
			}
		}
		if err := db.CreateClient(ctx, full); !errors.Is(err, store.ErrExists) {
			t.Errorf("second CreateClient = %v, want store.ErrExists", err)
		}
		if list, err := db.ListClients(ctx); err != nil || !cmp.Equal(list, []registration.Client{full, bare}) {
			t.Errorf("ListClients = %v, %v; want full then bare", list, err)
		}

		changed := full
		changed.ID, changed.Kind, changed.CreatedAt = bare.ID, bare.Kind, bare.CreatedAt
		changed.UpdatedAt = at.Add(9 * time.Hour)
		if err := db.UpdateClient(ctx, changed); err != nil {
			t.Fatal(err)
		}
		changed.LastUsedAt = bare.LastUsedAt // only TouchClient writes it
		if got, err := db.GetClient(ctx, bare.ID); err != nil || !cmp.Equal(got, changed) {
			t.Errorf("after UpdateClient: %v\n%s", err, cmp.Diff(changed, got))
		}
		if err := db.TouchClient(ctx, bare.ID, at.Add(10*time.Hour)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("TouchClient of a blocked client: %v, want ErrNotFound", err)
		}
		changed.BlockedAt = time.Time{}
		if err := errors.Join(db.UpdateClient(ctx, changed), db.TouchClient(ctx, bare.ID, at.Add(10*time.Hour))); err != nil {
			t.Fatal(err)
		}
		if got, _ := db.GetClient(ctx, bare.ID); !got.LastUsedAt.Equal(at.Add(10 * time.Hour)) {
			t.Errorf("after TouchClient LastUsedAt = %v", got.LastUsedAt)
		}
		if got, err := db.HoldClient(ctx, full.ID); err != nil || !cmp.Equal(got, full) {
			t.Errorf("HoldClient: %v\n%s", err, cmp.Diff(full, got))
		}
		if err := db.DeleteClient(ctx, bare.ID); err != nil {
			t.Fatal(err)
		}
		_, getErr := db.GetClient(ctx, bare.ID)
		_, holdErr := db.HoldClient(ctx, bare.ID)
		for name, err := range map[string]error{
			"GetClient": getErr, "HoldClient": holdErr, "UpdateClient": db.UpdateClient(ctx, changed),
			"DeleteClient": db.DeleteClient(ctx, bare.ID), "TouchClient": db.TouchClient(ctx, bare.ID, at),
		} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s of a deleted client = %v, want store.ErrNotFound", name, err)
			}
		}
		if _, err := db.GetClient(ctx, full.ID); err != nil {
			t.Errorf("the other client is gone too: %v", err)
		}
	})
}

func TestCountClientsFrom(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx := t.Context()
		for _, c := range []registration.Client{
			{ID: "a1", Kind: registration.KindDynamic, Source: "a", CreatedAt: at, UpdatedAt: at},
			{ID: "a2", Kind: registration.KindDynamic, Source: "a", CreatedAt: at.Add(time.Minute), UpdatedAt: at},
			{ID: "b1", Kind: registration.KindDynamic, Source: "b", CreatedAt: at, UpdatedAt: at},
			{ID: "op", Kind: registration.KindOperator, Source: "a", CreatedAt: at, UpdatedAt: at},
		} {
			if err := db.CreateClient(ctx, c); err != nil {
				t.Fatal(err)
			}
		}
		for _, tt := range []struct {
			source string
			since  time.Time
			want   int
		}{{"a", at, 2}, {"a", at.Add(time.Second), 1}, {"b", at, 1}, {"", at, 3}, {"c", at, 0}} {
			if n, err := db.CountClientsFrom(ctx, tt.source, tt.since); err != nil || n != tt.want {
				t.Errorf("CountClientsFrom(%q, %v) = %d, %v; want %d", tt.source, tt.since, n, err, tt.want)
			}
		}
	})
}

// The operator's and verified clients come first, then those of metadata
// documents; of the many that registered themselves none.
func TestListIdentities(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		for i, c := range []registration.Client{
			{ID: "dynamic", Kind: registration.KindDynamic},
			{ID: "https://b.example/c", Kind: registration.KindCIMD},
			{ID: "https://a.example/c", Kind: registration.KindCIMD, BlockedAt: at},
			{ID: "verified", Kind: registration.KindDynamic, VerifiedAt: at, Metadata: registration.ClientMetadata{
				ClientName: "Quill\x00 \"2\" – 日本", RedirectURIs: []string{"https://quill.example/cb?a=%7B&b=\u00e9", "cursor://x"}}},
			{ID: "operator", Kind: registration.KindOperator, Metadata: registration.ClientMetadata{RedirectURIs: []string{"http://localhost/cb"}}},
			{ID: "https://v.example/c", Kind: registration.KindCIMD, VerifiedAt: at, VerifiedUntil: at.Add(time.Hour)},
		} {
			c.CreatedAt, c.UpdatedAt = at.Add(time.Duration(i)*time.Minute), at
			if err := db.CreateClient(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		for limit, want := range map[int][]string{
			10: {"verified", "operator", "https://v.example/c", "https://b.example/c", "https://a.example/c"},
			4:  {"verified", "operator", "https://v.example/c", "https://b.example/c"},
		} {
			list, err := db.ListIdentities(t.Context(), limit)
			var got []string
			for i, c := range list {
				full, err := db.GetClient(t.Context(), c.ID)
				if err != nil || !cmp.Equal(full.Identity(), list[i]) {
					t.Errorf("%s: %v %s", c.ID, err, cmp.Diff(full.Identity(), list[i]))
				}
				got = append(got, c.ID)
			}
			if err != nil || !cmp.Equal(got, want) {
				t.Errorf("at most %d: %q, want %q (%v)", limit, got, want, err)
			}
		}
	})
}
