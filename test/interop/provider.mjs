// An OAuthClientProvider of the TypeScript SDKs that keeps everything in
// memory and notes where the person has to go.
import { randomUUID } from "node:crypto";

export class MemoryProvider {
  constructor(redirectUrl) {
    this.redirectUrl = redirectUrl;
    this.saved = {};
  }

  get clientMetadata() {
    return {
      client_name: "Interop",
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
  }

  state() {
    return (this.saved.state = randomUUID());
  }
  clientInformation() {
    return this.saved.client;
  }
  saveClientInformation(client) {
    this.saved.client = client;
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
}
