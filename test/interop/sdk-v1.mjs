// @modelcontextprotocol/sdk 1.x.
import { createPrivateKeyJwtAuth } from "@modelcontextprotocol/sdk/client/auth-extensions.js";
import { auth, extractWWWAuthenticateParams, UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { cell } from "./driver.mjs";
import { drive } from "./sdk.mjs";

drive({
  Client, StreamableHTTPClientTransport, createPrivateKeyJwtAuth,
  isUnauthorized: (error) => error instanceof UnauthorizedError,
  finishAuth: (transport, parameters) => transport.finishAuth(parameters.get("code")),
  // 1.x answers 403 with a refresh, which cannot widen the scope. A program that
  // forgets the refresh token and names the scopes itself gets further.
  async stepUp(provider, response) {
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response);
    const scopes = new Set([...provider.saved.tokens.scope.split(" "), ...scope.split(" ")]);
    provider.invalidateCredentials("tokens");
    await auth(provider, { serverUrl: cell.mcp_url, resourceMetadataUrl, scope: [...scopes].join(" ") });
  },
});
