// @modelcontextprotocol/sdk 1.11.5, the last that knows MCP 2025-03-26 alone: it
// reads no RFC 9728 document, names no resource and asks for no scope.
import { UnauthorizedError } from "mcp-sdk-2025-03-26/client/auth.js";
import { Client } from "mcp-sdk-2025-03-26/client/index.js";
import { StreamableHTTPClientTransport } from "mcp-sdk-2025-03-26/client/streamableHttp.js";
import { drive } from "./sdk.mjs";

drive({
  Client, StreamableHTTPClientTransport,
  isUnauthorized: (error) => error instanceof UnauthorizedError,
  finishAuth: (transport, parameters) => transport.finishAuth(parameters.get("code")),
});
