package authserver_test

import (
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/authserver"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// rowsBut returns the lines of every row in the database, without these tables.
func (k *kit) rowsBut(without ...string) []string {
	k.t.Helper()
	lines := strings.Split(testkit.Dump(k.ctx, k.t, k.DB), "\n")
	return slices.DeleteFunc(lines, func(line string) bool {
		table, _, _ := strings.Cut(line, " ")
		return slices.Contains(without, table)
	})
}

// changesOnly runs fn and checks that no row changed but in these tables.
func (k *kit) changesOnly(fn func(), tables ...string) {
	k.t.Helper()
	before := k.rowsBut(tables...)
	fn()
	if diff := cmp.Diff(before, k.rowsBut(tables...)); diff != "" {
		k.t.Errorf("rows changed (-before +after):\n%s", diff)
	}
}

// denied checks that an answer is an error and that nothing changed in the
// database.
func (k *kit) denied(status int, code string, fn func() answer) answer {
	k.t.Helper()
	var got answer
	k.changesOnly(func() { got = fn() })
	want(k.t, got, status, code)
	if got.body.AccessToken != "" || got.body.RefreshToken != "" {
		k.t.Error("a refusal carries a token")
	}
	return got
}

// minted is the token string of a generation of a grant.
func (k *kit) minted(g grant.Grant, generation int) string {
	k.t.Helper()
	return k.mintedBy(k.App.Secrets, testkit.Issuer, g, generation)
}

func (k *kit) mintedBy(s *keys.Secrets, issuer string, g grant.Grant, generation int) string {
	k.t.Helper()
	token, err := authserver.MintToken(s, issuer, g.ID, generation, g.Salt)
	if err != nil {
		k.t.Fatal(err)
	}
	return token.Reveal()
}

// theGrant returns the only grant.
func (k *kit) theGrant() grant.Grant {
	k.t.Helper()
	list := k.grants()
	if len(list) != 1 {
		k.t.Fatalf("%d grants, want 1", len(list))
	}
	return list[0]
}
