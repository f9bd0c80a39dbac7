// Package mcpgo joins resourceserver with github.com/mark3labs/mcp-go: tools say
// themselves which scopes they need, and no tool runs without a token. It is a
// package of its own: programs on another SDK do not compile this one's.
//
//	s.AddTool(mcp.NewTool("add_note", mcpgo.Scopes("notes:write")), addNote)
//	...
//	rs, err := resourceserver.New(resourceserver.Options{
//		Issuer: issuer, Resource: resource,
//		Operations: mcpgo.Operations(s), FilterLists: true,
//	})
//	...
//	http.ListenAndServe(addr, rs.Protect(server.NewStreamableHTTPServer(s)))
//
// The context of a tool, prompt or resource handler is that of its own request:
// resourceserver.TokenFromContext finds the token there.
package mcpgo

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// metaScopes is the member of a tool's _meta that lists its scopes. Clients see
// it, as they may: a challenge names the same scopes.
const metaScopes = "io.github.ostiary-auth/scopes"

// Scopes is an option of mcp.NewTool that declares the scopes which a call of the
// tool needs, all of them, for Operations. Without scopes the tool is open to
// every valid token.
func Scopes(scopes ...string) mcp.ToolOption {
	return func(t *mcp.Tool) {
		var fields map[string]any
		meta := &mcp.Meta{}
		if t.Meta != nil {
			*meta, fields = *t.Meta, maps.Clone(t.Meta.AdditionalFields)
		}
		if fields == nil {
			fields = map[string]any{}
		}
		fields[metaScopes] = append([]string{}, scopes...) // not nil, which is null in JSON
		meta.AdditionalFields = fields
		t.Meta = meta
	}
}

// Operations returns a table for Options.Operations with the tools that s has
// now. A tool that says nothing by Scopes, or is added later or for one session
// alone, is not in it and needs Options.DefaultScopes, so nobody may call it
// unless those are set. Prompts and resources are added as further entries.
func Operations(s *server.MCPServer) map[resourceserver.Operation][]string {
	declared := map[string][]string{}
	for name, tool := range s.ListTools() {
		if tool.Tool.Meta == nil {
			continue
		}
		if scopes, ok := tool.Tool.Meta.AdditionalFields[metaScopes].([]string); ok {
			declared[name] = slices.Clone(scopes)
		}
	}
	return resourceserver.Tools(declared)
}

// RequireToken is a server.ToolHandlerMiddleware that runs a tool only where
// Protect has let the request in: the second lock of a server that is served in
// another way too, such as stdio or SSE.
func RequireToken(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if _, ok := resourceserver.TokenFromContext(ctx); !ok {
			return nil, errors.New("the call did not pass resourceserver's Protect")
		}
		return next(ctx, request)
	}
}
