// openid-client 6.x. It reads no RFC 9728 document: the program does.
import * as client from "openid-client";
import { Callback, cell, check, run } from "./driver.mjs";
import { LibraryClient, metadata, privateKey } from "./library.mjs";
import { play } from "./situations.mjs";

const options = { algorithm: "oauth2", execute: [client.allowInsecureRequests] };
const mcpURL = new URL(cell.mcp_url);

class Program extends LibraryClient {
  async discover(response) {
    const [, url] = response.headers.get("www-authenticate").match(/resource_metadata="([^"]*)"/);
    const prm = await (await fetch(url)).json();
    check(prm.resource === cell.mcp_url, `the resource is ${prm.resource}`);
    this.resource = prm.resource;
    this.server = new URL(prm.authorization_servers[0]);
  }

  async identify() {
    if (cell.kind === "dcr") {
      this.config = await client.dynamicClientRegistration(this.server, metadata(this.callback.url), client.None(), options);
    } else {
      this.config = await client.discovery(this.server, cell.client_id, undefined, await authentication(), options);
    }
  }

  async authorize(scope) {
    const { config, resource } = this;
    const [verifier, state] = [client.randomPKCECodeVerifier(), client.randomState()];
    const url = client.buildAuthorizationUrl(config, {
      redirect_uri: this.callback.url, scope, state, resource,
      code_challenge: await client.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256",
    });
    const arrived = new URL(this.callback.url);
    arrived.search = await this.callback.visit(url);
    return client.authorizationCodeGrant(config, arrived, { pkceCodeVerifier: verifier, expectedState: state }, { resource });
  }

  refresh(token) {
    return client.refreshTokenGrant(this.config, token, { resource: this.resource });
  }

  request(token, { method, headers, body }) {
    return client.fetchProtectedResource(this.config, token, mcpURL, method, body, headers);
  }

  revoke(token) {
    return client.tokenRevocation(this.config, token);
  }
}

async function authentication() {
  switch (cell.kind) {
    case "basic": return client.ClientSecretBasic(cell.client_secret);
    case "post": return client.ClientSecretPost(cell.client_secret);
    case "private_key_jwt": return client.PrivateKeyJwt(await privateKey());
    default: return client.None();
  }
}

run(async () => play(new Program(await Callback.listen())));
