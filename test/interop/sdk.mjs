// The flow that both TypeScript SDKs are driven through; they differ in imports,
// in how the callback is handed back and in step-up.
import { Callback, check, mcpURL, revoke, run, step } from "./driver.mjs";
import { MemoryProvider } from "./provider.mjs";

// drive takes the SDK's exports: Client, StreamableHTTPClientTransport,
// UnauthorizedError, refreshAuthorization, finishAuth(transport, parameters)
// and whether it steps up by itself.
export function drive(sdk) {
  return run(async () => {
    const callback = await Callback.listen();
    const provider = new MemoryProvider(callback.url);
    const session = new Session(sdk, provider, callback);

    await session.signIn(() => session.connect());
    step("token", { scope: provider.saved.tokens.scope });
    await session.connect();
    check((await session.call("list_notes")).includes("no notes"), "list_notes answered something else");
    step("tool", { name: "list_notes" });
    await refresh(session, provider);
    if (sdk.stepsUp) await stepUp(session, provider);
    await end(sdk, session, provider);
    callback.close();
  });
}

class Session {
  constructor(sdk, provider, callback) {
    Object.assign(this, { sdk, provider, callback });
  }

  async connect() {
    this.transport = new this.sdk.StreamableHTTPClientTransport(mcpURL, { authProvider: this.provider });
    this.client = new this.sdk.Client({ name: "interop", version: "1.0.0" });
    await this.client.connect(this.transport);
  }

  async call(name, args = {}) {
    const result = await this.client.callTool({ name, arguments: args });
    check(!result.isError, `${name} failed: ${JSON.stringify(result.content)}`);
    return result.content[0].text;
  }

  // signIn does what must end in UnauthorizedError, and then what the person
  // and the SDK do about it.
  async signIn(attempt) {
    try {
      await attempt();
    } catch (error) {
      if (!this.sdk.isUnauthorized(error)) throw error;
      const { authorizationURL, client, state } = this.provider.saved;
      step("challenge", { registered: Boolean(client.client_id), scope: authorizationURL.searchParams.get("scope") });
      const parameters = await this.callback.visit(authorizationURL);
      check(parameters.get("state") === state, "state did not come back");
      step("callback", { iss: parameters.get("iss") });
      await this.sdk.finishAuth(this.transport, parameters);
      return;
    }
    throw new Error("the server asked for no authorization");
  }
}

// refresh spoils the access token, so that the SDK meets a 401 and refreshes.
async function refresh(session, provider) {
  const before = provider.saved.tokens;
  check(before.refresh_token, "no refresh token was issued");
  provider.saved.tokens = { ...before, access_token: "spoiled" };
  provider.saved.authorizationURL = undefined;
  await session.call("list_notes");
  const after = provider.saved.tokens;
  check(after.access_token !== "spoiled" && after.refresh_token !== before.refresh_token, "nothing was refreshed");
  check(!provider.saved.authorizationURL, "the person was asked again");
  step("refresh", { scope: after.scope });
}

// stepUp calls a tool that needs a scope which the token lacks.
async function stepUp(session, provider) {
  await session.signIn(() => session.call("add_note", { text: "from the interop test" }));
  check(provider.saved.tokens.scope.split(" ").includes("notes:write"), `scope is ${provider.saved.tokens.scope}`);
  await session.call("add_note", { text: "from the interop test" });
  check((await session.call("list_notes")).includes("interop"), "the note is not there");
  step("step_up", { scope: provider.saved.tokens.scope });
}

async function end(sdk, session, provider) {
  const { client, discovery, tokens } = provider.saved;
  await session.client.close();
  await revoke(discovery.authorizationServerMetadata, client.client_id, tokens.refresh_token);
  try {
    await sdk.refreshAuthorization(discovery.authorizationServerUrl, {
      metadata: discovery.authorizationServerMetadata, clientInformation: client, refreshToken: tokens.refresh_token,
    });
  } catch (error) {
    check(/invalid_grant/.test(`${error.code ?? error.errorCode} ${error.name} ${error.message}`) || error.name === "InvalidGrantError",
      `refresh after revocation: ${error}`);
    step("revoke");
    return;
  }
  throw new Error("a revoked refresh token still works");
}
