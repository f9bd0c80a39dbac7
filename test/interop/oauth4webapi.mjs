// oauth4webapi checks every answer strictly, the JWT access token included.
import * as oauth from "oauth4webapi";
import { Callback, check, mcpURL, run, step } from "./driver.mjs";

const loopback = { [oauth.allowInsecureRequests]: true };

run(async () => {
  const callback = await Callback.listen();
  const { as, resource, scope } = await discover();
  const client = await register(as, callback.url);
  const flow = { as, client, resource, scope, auth: oauth.None(), callback };

  const tokens = await authorize(flow);
  await callTool(flow, tokens.access_token);
  const refreshed = await refresh(flow, tokens.refresh_token);
  await revoke(flow, refreshed.refresh_token);
  callback.close();
});

async function discover() {
  const challenge = await fetch(mcpURL, { method: "POST" });
  check(challenge.status === 401, `the MCP server answered ${challenge.status} without a token`);
  const [, scope] = challenge.headers.get("www-authenticate").match(/scope="([^"]*)"/);
  const prm = await oauth.processResourceDiscoveryResponse(mcpURL, await oauth.resourceDiscoveryRequest(mcpURL, loopback));
  step("challenge", { scope });

  const issuer = new URL(prm.authorization_servers[0]);
  const answer = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...loopback });
  const as = await oauth.processDiscoveryResponse(issuer, answer);
  const openid = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm: "oidc", ...loopback }));
  check(openid.issuer === as.issuer, "the two metadata documents disagree");
  step("discovery", { issuer: as.issuer });
  return { as, resource: prm.resource, scope };
}

async function register(as, redirectURI) {
  const request = await oauth.dynamicClientRegistrationRequest(as, {
    client_name: "Interop", redirect_uris: [redirectURI], token_endpoint_auth_method: "none",
    grant_types: ["authorization_code", "refresh_token"], response_types: ["code"],
  }, loopback);
  const client = await oauth.processDynamicClientRegistrationResponse(request);
  check(!("client_secret" in client), "a public client got a secret");
  step("registration");
  return client;
}

async function authorize({ as, client, auth, callback, resource, scope }) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const url = new URL(as.authorization_endpoint);
  url.search = new URLSearchParams({
    response_type: "code", client_id: client.client_id, redirect_uri: callback.url, scope, state, resource,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256",
  });
  const parameters = oauth.validateAuthResponse(as, client, await callback.visit(url), state);
  step("callback");

  const answer = await oauth.authorizationCodeGrantRequest(as, client, auth, parameters, callback.url, verifier,
    { additionalParameters: { resource }, ...loopback });
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, answer);
  check(tokens.refresh_token, "no refresh token was issued");
  await checkJWT(as, resource, tokens.access_token);
  step("token", { scope: tokens.scope });
  return tokens;
}

// checkJWT verifies the token as a resource server of RFC 9068 does.
async function checkJWT(as, resource, token) {
  const request = new Request(resource, { headers: { authorization: `Bearer ${token}` } });
  const claims = await oauth.validateJwtAccessToken(as, request, resource, loopback);
  check(claims.iss === as.issuer, "iss is not the issuer");
}

async function callTool({ as }, token) {
  let session;
  const send = async (message) => {
    const headers = new Headers({ "content-type": "application/json", accept: "application/json, text/event-stream" });
    if (session) headers.set("mcp-session-id", session);
    const answer = await oauth.protectedResourceRequest(token, "POST", mcpURL, headers,
      JSON.stringify({ jsonrpc: "2.0", ...message }), loopback);
    check(answer.ok, `${message.method} answered ${answer.status}`);
    session ??= answer.headers.get("mcp-session-id");
    return answer.text();
  };
  await send({ id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "interop", version: "1" } } });
  await send({ method: "notifications/initialized" });
  const answer = await send({ id: 2, method: "tools/call", params: { name: "list_notes", arguments: {} } });
  check(answer.includes("You have no notes"), `list_notes answered ${answer}`);
  step("tool", { name: "list_notes", issuer: as.issuer });
}

async function refresh({ as, client, auth, resource }, refreshToken) {
  const answer = await oauth.refreshTokenGrantRequest(as, client, auth, refreshToken, { additionalParameters: { resource }, ...loopback });
  const tokens = await oauth.processRefreshTokenResponse(as, client, answer);
  check(tokens.refresh_token !== refreshToken, "the refresh token was not rotated");
  await checkJWT(as, resource, tokens.access_token);
  step("refresh");
  return tokens;
}

async function revoke({ as, client, auth }, refreshToken) {
  await oauth.processRevocationResponse(await oauth.revocationRequest(as, client, auth, refreshToken, loopback));
  const answer = await oauth.refreshTokenGrantRequest(as, client, auth, refreshToken, loopback);
  try {
    await oauth.processRefreshTokenResponse(as, client, answer);
  } catch (error) {
    check(error.error === "invalid_grant", `refresh after revocation: ${error.error ?? error}`);
    step("revoke");
    return;
  }
  throw new Error("a revoked refresh token still works");
}
