// @modelcontextprotocol/client 2.x.
import { Client, createPrivateKeyJwtAuth, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { drive } from "./sdk.mjs";

drive({
  Client, StreamableHTTPClientTransport, createPrivateKeyJwtAuth,
  isUnauthorized: (error) => error instanceof UnauthorizedError,
  finishAuth: (transport, parameters) => transport.finishAuth(parameters),
});
