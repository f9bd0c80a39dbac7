package oauth_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

func TestError(t *testing.T) {
	cause := errors.New("row is gone")
	err := fmt.Errorf("redeem: %w", oauth.InvalidGrant("the code has expired").With(cause))
	if oauth.Code(err) != "invalid_grant" || !errors.Is(err, cause) {
		t.Errorf("Code = %q, cause kept = %t", oauth.Code(err), errors.Is(err, cause))
	}
	if oauth.Code(nil) != "" || oauth.Code(cause) != "server_error" {
		t.Error("nil is no error; what is not ours is server_error")
	}
	for e, want := range map[*oauth.Error]int{oauth.InvalidRequest("x"): 400, oauth.InvalidClient("x"): 401,
		oauth.Unavailable(1, nil): 503, oauth.TooManyRequests(1): 429} {
		if got := e.HTTPStatus(); got != want {
			t.Errorf("%s: status %d, want %d", e.Code, got, want)
		}
	}
}
