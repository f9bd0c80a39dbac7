package resource

import (
	"context"
	"net/http"
	"slices"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/metadata"
)

// Claims are what an MCP server says of itself in its RFC 9728 document. They
// are shown to the operator, who may take them over; nothing rests on them.
type Claims struct {
	// Name is resource_name, "" when it is missing or cannot be shown.
	Name string
	// Scopes are scopes_supported, without those that no resource can declare.
	Scopes []string
	// ListsIssuer reports whether the server names our issuer as an authorization
	// server; clients come to us only when it does.
	ListsIssuer bool
}

// FetchClaims reads the document of the MCP server at identifier (D5: 5
// seconds, 1 MiB, no redirect off the origin). A server that has none is
// metadata.ErrNotServed.
func FetchClaims(ctx context.Context, client *http.Client, identifier, issuer string) (Claims, error) {
	doc, err := metadata.FetchProtectedResource(ctx, client, identifier)
	if err != nil {
		return Claims{}, err
	}
	c := Claims{ListsIssuer: slices.Contains(doc.AuthorizationServers, issuer)}
	if checkText("resource_name", doc.ResourceName, maxName) == nil {
		c.Name = doc.ResourceName
	}
	for _, s := range doc.ScopesSupported {
		known := slices.Contains(c.Scopes, s)
		if oauth.IsScopeToken(s) && !oauth.IsProtocolScope(s) && !known && len(c.Scopes) < maxScopes {
			c.Scopes = append(c.Scopes, s)
		}
	}
	return c, nil
}
