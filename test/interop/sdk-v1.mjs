// @modelcontextprotocol/sdk 1.x. With a refresh token at hand it answers a 403
// by refreshing, which cannot widen the scope, so it takes no step up.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { refreshAuthorization, UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { drive } from "./sdk.mjs";

drive({
  Client, StreamableHTTPClientTransport, refreshAuthorization,
  isUnauthorized: (error) => error instanceof UnauthorizedError,
  finishAuth: (transport, parameters) => transport.finishAuth(parameters.get("code")),
  stepsUp: false,
});
