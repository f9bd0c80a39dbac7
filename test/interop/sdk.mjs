// The client that both TypeScript SDKs are driven as; they differ in imports
// and in how the callback is handed back.
import { Callback, cell, check, run } from "./driver.mjs";
import { MemoryProvider } from "./provider.mjs";
import { play } from "./situations.mjs";

// drive takes the SDK's exports: Client, StreamableHTTPClientTransport,
// createPrivateKeyJwtAuth, isUnauthorized(error) and finishAuth(transport,
// parameters); and of an SDK that does not step up by itself stepUp(provider,
// response), which asks for authorization again after the 403 in response.
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
    check(/notes/.test(await this.#call("list_notes")), "list_notes answered something else");
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

  // widenByApp is what the program can do when its SDK gives up after a 403.
  async widenByApp() {
    check(this.sdk.stepUp && this.refused, "the SDK must step up by itself");
    await this.sdk.stepUp(this.provider, this.refused);
    await this.#visit();
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
    const options = { authProvider: this.provider, fetch: (url, init) => this.#fetch(url, init) };
    this.transport = new this.sdk.StreamableHTTPClientTransport(new URL(cell.mcp_url), options);
    this.client = new this.sdk.Client({ name: "interop", version: "1.0.0" });
    await this.client.connect(this.transport);
  }

  // fetch keeps the last 403: not every SDK tells its program what is in it.
  async #fetch(url, init) {
    const response = await fetch(url, init);
    if (response.status === 403) this.refused = response.clone();
    return response;
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
      return this.#visit();
    }
    throw new Error("the server asked for no authorization");
  }

  // visit takes the person to where the SDK wants them.
  async #visit() {
    const { authorizationURL, state } = this.provider.saved;
    check(authorizationURL, "no authorization was asked for");
    const parameters = await this.callback.visit(authorizationURL);
    check(parameters.get("state") === (state ?? null), "state did not come back");
    await this.sdk.finishAuth(this.transport, parameters);
  }
}
