package registration_test

import (
	"testing"

	"github.com/ostiary-auth/ostiary/registration"
)

func TestA14_ScopeLimit(t *testing.T) {
	t.Parallel()
	metadata := registration.ClientMetadata{Scope: "notes:read"}
	for _, tt := range []struct {
		name string
		kind registration.Kind
		want string
	}{
		{"A14 what the operator wrote is a limit", registration.KindOperator, "notes:read"},
		{"A14 what a client registered by itself is none", registration.KindDynamic, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &registration.Client{Kind: tt.kind, Metadata: metadata}
			if got := c.ScopeLimit(); got != tt.want {
				t.Errorf("ScopeLimit = %q, want %q", got, tt.want)
			}
		})
	}
}
