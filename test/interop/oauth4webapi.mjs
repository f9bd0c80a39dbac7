// oauth4webapi checks every answer strictly, the JWT access token included.
import * as oauth from "oauth4webapi";
import { Callback, cell, check, run } from "./driver.mjs";
import { LibraryClient, metadata, privateKey } from "./library.mjs";
import { play } from "./situations.mjs";

const loopback = { [oauth.allowInsecureRequests]: true };
const mcpURL = new URL(cell.mcp_url);

class Program extends LibraryClient {
  async discover() {
    const prm = await oauth.processResourceDiscoveryResponse(mcpURL, await oauth.resourceDiscoveryRequest(mcpURL, loopback));
    this.resource = prm.resource;
    const issuer = new URL(prm.authorization_servers[0]);
    const read = async (algorithm) =>
      oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm, ...loopback }));
    this.as = await read("oauth2");
    check((await read("oidc")).issuer === this.as.issuer, "the two metadata documents disagree");
  }

  async identify() {
    this.auth = await authentication();
    this.client = { client_id: cell.client_id };
    if (cell.kind !== "dcr") return;
    const answer = await oauth.dynamicClientRegistrationRequest(this.as, metadata(this.callback.url), loopback);
    this.client = await oauth.processDynamicClientRegistrationResponse(answer);
    check(!("client_secret" in this.client), "a public client got a secret");
  }

  async authorize(scope) {
    const { as, client, resource } = this;
    const verifier = oauth.generateRandomCodeVerifier();
    const state = oauth.generateRandomState();
    const url = new URL(as.authorization_endpoint);
    url.search = new URLSearchParams({
      response_type: "code", client_id: client.client_id, redirect_uri: this.callback.url, scope, state, resource,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256",
    });
    const parameters = oauth.validateAuthResponse(as, client, await this.callback.visit(url), state);
    const answer = await oauth.authorizationCodeGrantRequest(as, client, this.auth, parameters, this.callback.url, verifier,
      { additionalParameters: { resource }, ...loopback });
    return this.#checked(await oauth.processAuthorizationCodeResponse(as, client, answer));
  }

  async refresh(token) {
    const { as, client, resource } = this;
    const answer = await oauth.refreshTokenGrantRequest(as, client, this.auth, token, { additionalParameters: { resource }, ...loopback });
    return this.#checked(await oauth.processRefreshTokenResponse(as, client, answer));
  }

  request(token, { method, headers, body }) {
    return oauth.protectedResourceRequest(token, method, mcpURL, headers, body, loopback);
  }

  async revoke(token) {
    await oauth.processRevocationResponse(await oauth.revocationRequest(this.as, this.client, this.auth, token, loopback));
  }

  // checked verifies the access token as a resource server of RFC 9068 does.
  async #checked(tokens) {
    const request = new Request(this.resource, { headers: { authorization: `Bearer ${tokens.access_token}` } });
    const claims = await oauth.validateJwtAccessToken(this.as, request, this.resource, loopback);
    check(claims.client_id === this.client.client_id, "client_id is another one");
    return tokens;
  }
}

async function authentication() {
  switch (cell.kind) {
    case "basic": return oauth.ClientSecretBasic(cell.client_secret);
    case "post": return oauth.ClientSecretPost(cell.client_secret);
    case "private_key_jwt": return oauth.PrivateKeyJwt(await privateKey());
    default: return oauth.None();
  }
}

run(async () => play(new Program(await Callback.listen())));
