// What the drivers share: the cell they are told, the steps they report, the
// client's loopback listener.
import { createServer } from "node:http";

const need = (name) => {
  if (!process.env[name]) throw new Error(`${name} is not set`);
  return process.env[name];
};

// cell is what the test wants (README.md): kind, situation, mcp_url, issuer,
// control_url and, of clients that have them, client_id, client_secret and
// private_jwk.
export const cell = JSON.parse(need("CELL"));

// preRegistered tells whether the operator added the client.
export const preRegistered = !["dcr", "cimd"].includes(cell.kind);

// authMethod is what the client registers, or was added, with.
export const authMethod =
  { basic: "client_secret_basic", post: "client_secret_post", private_key_jwt: "private_key_jwt" }[cell.kind] ?? "none";

// step reports one step passed, as a JSON line.
export function step(name, detail = {}) {
  console.log(JSON.stringify({ step: name, ...detail }));
}

export function check(condition, message) {
  if (!condition) throw new Error(message);
}

// control asks the test to do its half: "delete-client", "fail-token-once", or
// "open" with a URL, which returns once the person's browser has been at the
// client's listener.
export async function control(action, body) {
  const response = await fetch(`${cell.control_url}/${action}`, { method: "POST", body });
  check(response.ok, `${action}: ${await response.text()}`);
}

// Callback is the client's own listener on 127.0.0.1. visit takes the person's
// browser there and returns the parameters that arrived.
export class Callback {
  static async listen() {
    const callback = new Callback();
    callback.server = createServer((request, response) => {
      const url = new URL(request.url, callback.url);
      response.end("You can close this page.");
      if (url.pathname === "/callback") callback.arrived = url.searchParams;
    });
    await new Promise((resolve) => callback.server.listen(0, "127.0.0.1", resolve));
    callback.url = `http://127.0.0.1:${callback.server.address().port}/callback`;
    return callback;
  }

  async visit(authorizationURL) {
    this.arrived = undefined;
    await control("open", String(authorizationURL));
    check(this.arrived, "the browser did not come back");
    check(!this.arrived.has("error"), `the authorization response is an error: ${this.arrived.get("error")}`);
    return this.arrived;
  }
}

// run ends the process with 1 when main throws; open streams do not keep it.
export async function run(main) {
  try {
    await main();
    process.exit(0);
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
}
