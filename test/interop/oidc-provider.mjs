// An authorization server that is not Ostiary: node-oidc-provider, with an app, a
// resource server that may introspect, a job, and a person who allows everything at
// once. PORT is where it listens, JOB_JWKS the job's public keys, and DPOP_NONCE=1 lets
// no DPoP proof pass without a nonce.
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const PORT = Number(process.env.PORT);
const ACCOUNT = "ada";

const { subtle } = globalThis.crypto;
const pair = await subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
const { key_ops: _, ext: __, ...jwk } = await subtle.exportKey("jwk", pair.privateKey); // they are the private key's
const key = { ...jwk, alg: "ES256", use: "sig", kid: "es-1" };

const job = process.env.JOB_JWKS && {
  client_id: "job", token_endpoint_auth_method: "private_key_jwt", jwks: JSON.parse(process.env.JOB_JWKS),
  redirect_uris: [], response_types: [], grant_types: ["client_credentials"],
};

const provider = new Provider(`http://localhost:${PORT}`, {
  jwks: { keys: [key] },
  clientDefaults: { id_token_signed_response_alg: "ES256" },
  clients: [
    { client_id: "app", token_endpoint_auth_method: "none", redirect_uris: ["http://127.0.0.1/callback"], application_type: "native" },
    { client_id: "resource", client_secret: "a secret of the resource server", redirect_uris: [], response_types: [], grant_types: [] },
    ...(job ? [job] : []),
  ],
  cookies: { keys: ["interop"] },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  features: {
    devInteractions: { enabled: false },
    introspection: { enabled: true },
    revocation: { enabled: true },
    registration: { enabled: true },
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => process.env.DPOP_NONCE === "1" },
    resourceIndicators: {
      enabled: true,
      // A resource below /opaque is one whose tokens only the issuer can read.
      getResourceServerInfo: (_, resource) => ({
        audience: resource, scope: "notes:read notes:write", accessTokenTTL: 600,
        accessTokenFormat: new URL(resource).pathname.startsWith("/opaque") ? "opaque" : "jwt",
        jwt: { sign: { alg: "ES256" } },
      }),
    },
  },
});

async function interact(request, response) {
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  const result = prompt.name === "login" ? { login: { accountId: ACCOUNT } } : { consent: { grantId: await grant(params, session) } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

async function grant({ client_id: clientId, scope, resource }, { accountId }) {
  const all = new provider.Grant({ accountId, clientId });
  all.addOIDCScope(scope);
  all.addResourceScope(resource, scope);
  return all.save();
}

const serve = provider.callback();
createServer((request, response) => {
  if (!request.url.startsWith("/interaction/")) return serve(request, response);
  interact(request, response).catch((error) => {
    console.error(error);
    response.writeHead(500).end(String(error));
  });
}).listen(PORT, "localhost");
