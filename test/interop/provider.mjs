// An OAuthClientProvider of the TypeScript SDKs that keeps everything in
// memory and notes where the person has to go.
import { randomUUID } from "node:crypto";
import { authMethod, cell, preRegistered } from "./driver.mjs";

export class MemoryProvider {
  // createPrivateKeyJwtAuth is the SDK's.
  constructor(redirectUrl, createPrivateKeyJwtAuth) {
    this.redirectUrl = redirectUrl;
    this.saved = {};
    if (cell.kind === "cimd") this.clientMetadataUrl = cell.client_id;
    if (preRegistered) {
      this.saved.client = {
        client_id: cell.client_id, client_secret: cell.client_secret, token_endpoint_auth_method: authMethod, issuer: cell.issuer,
      };
    } else {
      // Only a client that may register has this.
      this.saveClientInformation = (client) => (this.saved.client = client);
    }
    if (cell.private_jwk) {
      this.addClientAuthentication = createPrivateKeyJwtAuth({
        issuer: cell.client_id, subject: cell.client_id, privateKey: cell.private_jwk, alg: "ES256",
      });
    }
  }

  get clientMetadata() {
    return {
      client_name: "Interop",
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: authMethod,
    };
  }

  state() {
    return (this.saved.state = randomUUID());
  }
  clientInformation() {
    return this.saved.client;
  }
  tokens() {
    return this.saved.tokens;
  }
  saveTokens(tokens) {
    this.saved.tokens = tokens;
  }
  redirectToAuthorization(url) {
    this.saved.authorizationURL = url;
  }
  saveCodeVerifier(verifier) {
    this.saved.verifier = verifier;
  }
  codeVerifier() {
    return this.saved.verifier;
  }
  saveDiscoveryState(state) {
    this.saved.discovery = state;
  }
  discoveryState() {
    return this.saved.discovery;
  }
  invalidateCredentials(scope) {
    const all = scope === "all";
    if (all || scope === "tokens") this.saved.tokens = undefined;
    if ((all || scope === "client") && !preRegistered) this.saved.client = undefined;
    if (all || scope === "discovery") this.saved.discovery = undefined;
  }
}
