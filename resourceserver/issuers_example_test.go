package resourceserver_test

import (
	"fmt"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// Two issuers: one's tokens are JWTs of RFC 9068, the other's are opaque.
func ExampleIssuer() {
	const secret resourceserver.Secret = "from a file, say"
	rs, err := resourceserver.New(resourceserver.Options{
		Resource: "https://mcp.example.com/mcp",
		Scopes:   []string{"notes:read"},
		Issuers: []resourceserver.Issuer{
			{Identifier: "https://login.example.com"},
			{
				Identifier: "https://id.partner.example",
				Introspection: &resourceserver.Introspection{
					ClientID:     "mcp-server",
					ClientSecret: secret,
				},
			},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rs.MetadataURL())
	// Output: https://mcp.example.com/.well-known/oauth-protected-resource/mcp
}

// Microsoft Entra: aud is the application's id, scopes are in scp and lack the
// prefix that clients ask with.
func ExampleProfile() {
	const tenant, app = "9122040d-6c67-4c5b-b112-36a304b66dad", "6e74172b-be56-4843-9ff4-e66a39bb12e3"
	_, err := resourceserver.New(resourceserver.Options{
		Resource: "https://mcp.example.com/mcp",
		Scopes:   []string{"api://" + app + "/notes.read"},
		Issuers: []resourceserver.Issuer{{
			Identifier:     "https://login.microsoftonline.com/" + tenant + "/v2.0",
			Profile:        resourceserver.ProfileEntra,
			AllowAudiences: []string{app},
			ScopePrefix:    "api://" + app + "/",
		}},
	})
	fmt.Println(err)
	// Output: <nil>
}
