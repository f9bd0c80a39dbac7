// The client that both TypeScript SDKs are driven as; they differ in imports
// and in how the callback is handed back.
import { Callback, cell, check, run } from "./driver.mjs";
import { MemoryProvider } from "./provider.mjs";
import { play } from "./situations.mjs";

// drive takes the SDK's exports: Client, StreamableHTTPClientTransport,
// createPrivateKeyJwtAuth, isUnauthorized(error) and finishAuth(transport,
// parameters).
export function drive(sdk) {
  return run(async () => play(new SDKClient(sdk, await Callback.listen())));
}

class SDKClient {
  constructor(sdk, callback) {
    this.sdk = sdk;
    this.callback = callback;
    this.provider = new MemoryProvider(callback.url, sdk.createPrivateKeyJwtAuth);
  }

  async login() {
    await this.#authorized(() => this.#connect());
    await this.#connect();
  }

  async list() {
    this.provider.saved.authorizationURL = undefined;
    check((await this.#call("list_notes")).includes("no notes"), "list_notes answered something else");
    check(!this.provider.saved.authorizationURL, "the person was asked again");
  }

  async loginAgain() {
    await this.#authorized(() => this.#call("list_notes"));
  }

  async widen() {
    await this.#authorized(() => this.#call("add_note", { text: "from the interop test" }));
    await this.#call("add_note", { text: "from the interop test" });
    check((await this.#call("list_notes")).includes("interop"), "the note is not there");
  }

  spoil() {
    this.provider.saved.tokens = { ...this.provider.saved.tokens, access_token: "spoiled" };
  }
  refreshToken() {
    return this.provider.saved.tokens?.refresh_token;
  }
  restore(token) {
    this.provider.saved.tokens = { ...this.provider.saved.tokens, refresh_token: token };
  }

  async #connect() {
    this.transport = new this.sdk.StreamableHTTPClientTransport(new URL(cell.mcp_url), { authProvider: this.provider });
    this.client = new this.sdk.Client({ name: "interop", version: "1.0.0" });
    await this.client.connect(this.transport);
  }

  async #call(name, args = {}) {
    const result = await this.client.callTool({ name, arguments: args });
    check(!result.isError, `${name} failed: ${JSON.stringify(result.content)}`);
    return result.content[0].text;
  }

  // authorized does what must end in UnauthorizedError, and then what the person
  // and the SDK do about it.
  async #authorized(attempt) {
    this.provider.saved.authorizationURL = undefined;
    try {
      await attempt();
    } catch (error) {
      if (!this.sdk.isUnauthorized(error)) throw error;
      const { authorizationURL, state } = this.provider.saved;
      check(authorizationURL, `no authorization was asked for: ${error}`);
      const parameters = await this.callback.visit(authorizationURL);
      check(parameters.get("state") === state, "state did not come back");
      await this.sdk.finishAuth(this.transport, parameters);
      return;
    }
    throw new Error("the server asked for no authorization");
  }
}
