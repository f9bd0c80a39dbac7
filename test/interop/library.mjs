// A program on an OAuth library: the library has the protocol, and what to do
// when a token is refused is the program's. A driver gives it
//
//   discover(response)   reads where to ask, from the MCP server's 401
//   identify()           registers, or takes the client that it was given
//   authorize(scope)     returns tokens that the person allowed
//   refresh(token)       returns the tokens after these
//   request(token, init) asks the MCP server; throws an error with status and
//                        cause, the challenges, when that refuses
//   revoke(token)        revokes a token (RFC 7009)
import { cell, check, preRegistered } from "./driver.mjs";

export class LibraryClient {
  constructor(callback) {
    this.callback = callback;
  }

  async login() {
    const response = await fetch(cell.mcp_url, { method: "POST" });
    check(response.status === 401, `the MCP server answered ${response.status} without a token`);
    this.scope = response.headers.get("www-authenticate").match(/scope="([^"]*)"/)[1];
    await this.discover(response);
    await this.identify();
    this.tokens = await this.authorize(this.scope);
    check(this.tokens.refresh_token, "no refresh token was issued");
  }

  async list() {
    check((await this.#refreshing("list_notes")).includes("no notes"), "list_notes answered something else");
  }

  async loginAgain() {
    try {
      await this.list();
    } catch (error) {
      if ((await codeOf(error)) !== "invalid_client") throw error;
      if (preRegistered) throw new Error("invalid_client", { cause: error });
      await this.identify();
      this.tokens = await this.authorize(this.scope);
      return;
    }
    throw new Error("the server asked for no authorization");
  }

  async widen() {
    const note = { text: "from the interop test" };
    const error = await this.#call("add_note", note).catch((error) => error);
    check(error.status === 403, `add_note without its scope: ${error}`);
    const { parameters } = error.cause[0];
    check(parameters.error === "insufficient_scope", `the challenge is ${JSON.stringify(parameters)}`);
    this.tokens = await this.authorize([...new Set([...this.scope.split(" "), ...parameters.scope.split(" ")])].join(" "));
    await this.#call("add_note", note);
    check((await this.#call("list_notes")).includes("interop"), "the note is not there");
  }

  async logout() {
    const token = this.tokens.refresh_token;
    await this.revoke(token);
    const error = await this.refresh(token).catch((error) => error);
    check(error.error === "invalid_grant", `refresh after revocation: ${error.error ?? error}`);
  }

  spoil() {
    this.tokens = { ...this.tokens, access_token: "spoiled" };
  }
  refreshToken() {
    return this.tokens.refresh_token;
  }
  restore(token) {
    this.tokens = { ...this.tokens, refresh_token: token };
  }

  async #refreshing(tool) {
    const error = await this.#call(tool).catch((error) => error);
    if (!(error instanceof Error)) return error;
    if (error.status !== 401) throw error;
    this.tokens = await this.refresh(this.tokens.refresh_token);
    return this.#call(tool);
  }

  // call calls a tool in an MCP session of its own.
  async #call(name, args = {}) {
    let session;
    const send = async (message) => {
      const headers = new Headers({ "content-type": "application/json", accept: "application/json, text/event-stream" });
      if (session) headers.set("mcp-session-id", session);
      const body = JSON.stringify({ jsonrpc: "2.0", ...message });
      const answer = await this.request(this.tokens.access_token, { method: "POST", headers, body });
      check(answer.ok, `${message.method} answered ${answer.status}`);
      session ??= answer.headers.get("mcp-session-id");
      return answer.text();
    };
    const client = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "interop", version: "1" } };
    await send({ id: 1, method: "initialize", params: client });
    await send({ method: "notifications/initialized" });
    return send({ id: 2, method: "tools/call", params: { name, arguments: args } });
  }
}

// codeOf returns the error of a token response, which libraries leave unread
// when a WWW-Authenticate header is with it.
async function codeOf(error) {
  return error.error ?? (error.response?.bodyUsed === false ? (await error.response.json()).error : undefined);
}

// privateKey imports the client's key for ES256.
export function privateKey() {
  return crypto.subtle.importKey("jwk", cell.private_jwk, { name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);
}

// metadata is what the client registers.
export function metadata(redirectURI) {
  return {
    client_name: "Interop", redirect_uris: [redirectURI], token_endpoint_auth_method: "none",
    grant_types: ["authorization_code", "refresh_token"], response_types: ["code"],
  };
}
