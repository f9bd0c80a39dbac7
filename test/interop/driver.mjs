// What the drivers share: their input, the steps they report, the client's
// loopback listener.
import { createServer } from "node:http";
import { Person } from "./person.mjs";

const need = (name) => {
  if (!process.env[name]) throw new Error(`${name} is not set`);
  return process.env[name];
};

export const mcpURL = new URL(need("MCP_URL"));
export const person = new Person(need("PERSON_EMAIL"), need("PERSON_PASSWORD"));

// step reports one step passed, as a JSON line.
export function step(name, detail = {}) {
  console.log(JSON.stringify({ step: name, ...detail }));
}

export function check(condition, message) {
  if (!condition) throw new Error(message);
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
    const leaves = await person.authorize(authorizationURL);
    check(leaves.href.startsWith(`${this.url}?`), `the browser would leave for ${leaves.origin}${leaves.pathname}`);
    await fetch(leaves);
    check(!this.arrived.has("error"), `the authorization response is an error: ${this.arrived.get("error")}`);
    return this.arrived;
  }

  close() {
    this.server.close();
  }
}

// revoke posts to the revocation endpoint (RFC 7009) as a public client.
export async function revoke(metadata, clientID, token) {
  check(metadata.revocation_endpoint, "the metadata names no revocation_endpoint");
  const response = await fetch(metadata.revocation_endpoint, {
    method: "POST",
    body: new URLSearchParams({ token, token_type_hint: "refresh_token", client_id: clientID }),
  });
  check(response.status === 200, `revocation answered ${response.status}`);
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
