package authclient

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestC10_DeviceRegistration: a client without a redirect URI says that it has no
// response type; left out, it would be code (RFC 7591 §2), and node-oidc-provider
// refuses it without a redirect URI.
func TestC10_DeviceRegistration(t *testing.T) {
	t.Parallel()
	c := newWorld(t).client()
	raw, err := json.Marshal(c.registrationRequest(&authorizationServer{}, ""))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"client_name": "MCP client", "application_type": "native", "token_endpoint_auth_method": "none",
		"grant_types": []any{grantDeviceCode, "refresh_token"}, "response_types": []any{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
