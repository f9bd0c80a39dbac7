// @modelcontextprotocol/client 2.x.
import { Client, refreshAuthorization, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { drive } from "./sdk.mjs";

drive({
  Client, StreamableHTTPClientTransport, refreshAuthorization,
  isUnauthorized: (error) => error instanceof UnauthorizedError,
  finishAuth: (transport, parameters) => transport.finishAuth(parameters),
  stepsUp: true,
});
