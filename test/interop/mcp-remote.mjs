// mcp-remote, as an MCP host runs it: a stdio server that keeps its registration
// and tokens in files.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { authMethod, cell, check, preRegistered, run } from "./driver.mjs";
import { Browser, environment, freePort } from "./program.mjs";
import { play } from "./situations.mjs";

const program = fileURLToPath(new URL("node_modules/mcp-remote/dist/proxy.js", import.meta.url));
const TIMEOUT_MS = 150_000;

class MCPRemote {
  browser = new Browser();

  async login() {
    const transport = new StdioClientTransport({
      command: process.execPath, args: [program, ...(await parameters())],
      env: environment({ MCP_REMOTE_CONFIG_DIR: process.env.SCRATCH }), stderr: "pipe",
    });
    this.browser.watch(transport.stderr);
    this.client = new Client({ name: "interop", version: "1.0.0" });
    await this.#settled(this.client.connect(transport, { timeout: TIMEOUT_MS }));
    check(this.browser.visits === 1, `the person was asked ${this.browser.visits} times`);
  }

  async list() {
    const asked = this.browser.visits;
    check((await this.#call("list_notes")).includes("no notes"), "list_notes answered something else");
    check(this.browser.visits === asked, "the person was asked again");
  }

  async loginAgain() {
    const asked = this.browser.visits;
    await this.#call("list_notes");
    check(this.browser.visits > asked, "the server asked for no authorization");
  }

  async widen() {
    await this.#call("add_note", { text: "from the interop test" });
    check((await this.#call("list_notes")).includes("interop"), "the note is not there");
  }

  spoil() {
    this.#change({ access_token: "spoiled" });
  }
  refreshToken() {
    return this.#tokens().refresh_token;
  }
  restore(token) {
    this.#change({ refresh_token: token });
  }

  async #call(name, args = {}) {
    const result = await this.#settled(this.client.callTool({ name, arguments: args }, { timeout: TIMEOUT_MS }));
    check(!result.isError, `${name} failed: ${JSON.stringify(result.content)}`);
    return result.content[0].text;
  }

  // settled adds what mcp-remote printed to what it answers, which is little.
  async #settled(work) {
    try {
      return await Promise.race([work, this.browser.failed]);
    } catch (error) {
      throw new Error(`${error.message}\n${this.browser.errors()}`, { cause: error });
    }
  }

  #tokens() {
    return JSON.parse(readFileSync(this.#file(), "utf8"));
  }
  #change(members) {
    writeFileSync(this.#file(), JSON.stringify({ ...this.#tokens(), ...members }));
  }
  #file() {
    const folder = join(process.env.SCRATCH, "mcp-remote-v1");
    return join(folder, readdirSync(folder).find((name) => name.endsWith("_tokens.json")));
  }
}

// parameters are the command line. The port is the person's to choose where the
// redirect URI is fixed beforehand.
async function parameters() {
  const common = ["--transport", "http-only", "--auth-timeout", "90"];
  if (cell.kind === "dcr") return [cell.mcp_url, ...common];
  const port = String(await freePort());
  if (!preRegistered) return [cell.mcp_url, port, ...common, "--client-metadata-url", cell.client_id];
  const info = { client_id: cell.client_id, client_secret: cell.client_secret, token_endpoint_auth_method: authMethod };
  return [cell.mcp_url, port, ...common, "--static-oauth-client-info", JSON.stringify(info)];
}

run(() => play(new MCPRemote()));
