package storetest_test

import (
	"testing"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/authclient/storetest"
)

func TestMemoryStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) func() authclient.Store {
		s := authclient.NewMemoryStore()
		return func() authclient.Store { return s }
	})
}
