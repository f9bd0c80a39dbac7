// The command line of the MCP Inspector: each call is a process, and what it
// keeps between them are files in the person's home.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cell, check, preRegistered, run } from "./driver.mjs";
import { Browser, environment, freePort } from "./program.mjs";
import { play } from "./situations.mjs";

const program = fileURLToPath(new URL("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", import.meta.url));
const CONNECT_TIMEOUT_MS = "60000"; // a busy machine is not what this is about
const secrets = join(process.env.SCRATCH, ".mcp-inspector", "secrets.json");

class Inspector {
  constructor(port) {
    this.options = [
      "--transport", "http", "--format", "json", "--callback-url", `http://127.0.0.1:${port}/oauth/callback`,
      "--connect-timeout", CONNECT_TIMEOUT_MS,
    ];
    if (cell.kind === "cimd") this.options.push("--client-metadata-url", cell.client_id);
    if (preRegistered) this.options.push("--client-id", cell.client_id);
    if (cell.client_secret) this.options.push("--client-secret", cell.client_secret);
  }

  async login() {
    check((await this.#call("list_notes")).visits === 1, "the server asked for no authorization");
  }

  async list() {
    const { text, visits } = await this.#call("list_notes");
    check(text.includes("no notes"), "list_notes answered something else");
    check(visits === 0, "the person was asked again");
  }

  async loginAgain() {
    await this.login();
  }

  async widen() {
    const { visits } = await this.#call("add_note", "text=from the interop test");
    check(visits === 1, "the person was not asked");
    check((await this.#call("list_notes")).text.includes("interop"), "the note is not there");
  }

  spoil() {
    this.#change({ access_token: "spoiled" });
  }
  refreshToken() {
    return this.#tokens()[1].refresh_token;
  }
  restore(token) {
    this.#change({ refresh_token: token });
  }

  // call runs the Inspector once; who is asked whether to step up says yes.
  async #call(tool, ...args) {
    const browser = new Browser();
    const child = spawn(process.execPath, [
      program, "--cli", cell.mcp_url, ...this.options, "--method", "tools/call", "--tool-name", tool, ...args.flatMap((arg) => ["--tool-arg", arg]),
    ], { env: environment({ MCP_INSPECTOR_SECRET_STORE: "file", MCP_AUTO_OPEN_ENABLED: "true" }) });
    browser.watch(child.stderr);
    child.stdin.on("error", () => {}).write("y\n");
    let printed = "";
    child.stdout.setEncoding("utf8").on("data", (text) => (printed += text));
    const ended = new Promise((resolve) => child.on("close", resolve));
    try {
      const code = await Promise.race([ended, browser.failed]);
      check(code === 0, `the Inspector ended with ${code}: ${browser.errors()}`);
    } finally {
      child.kill();
    }
    const { result } = JSON.parse(printed);
    check(!result.isError, `${tool} failed: ${JSON.stringify(result.content)}`);
    return { text: result.content[0].text, visits: browser.visits };
  }

  // tokens returns the key of the stored tokens and what is stored there.
  #tokens() {
    const [key, value] = Object.entries(JSON.parse(readFileSync(secrets, "utf8")).secrets).find(([key]) => key.includes(":tokens:"));
    return [key, JSON.parse(value)];
  }

  #change(members) {
    const store = JSON.parse(readFileSync(secrets, "utf8"));
    const [key, tokens] = this.#tokens();
    store.secrets[key] = JSON.stringify({ ...tokens, ...members });
    writeFileSync(secrets, JSON.stringify(store));
  }
}

run(async () => play(new Inspector(await freePort())));
