// A client that is a program: what it is started with, and the person who opens
// the URLs that it wants a browser for.
import { randomInt } from "node:crypto";
import { connect, createServer } from "node:net";
import { cell, control } from "./driver.mjs";

const LISTENER_TRIES = 1200;
const LISTENER_PAUSE_MS = 25;

// environment is the program's: a home of its own, and a desktop on which no
// browser starts.
export function environment(more) {
  return { PATH: process.env.PATH, HOME: process.env.SCRATCH, BROWSER: "true", ...more };
}

// freePort returns a port that nobody listens on, and that the system gives
// nobody by itself until the program starts to listen there.
export async function freePort() {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const server = createServer();
    const free = await new Promise((resolve) => {
      server.on("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

// Browser reads what a program prints on stderr, and takes the person to every
// authorization URL in it.
export class Browser {
  // visits is how often the person was sent to the authorization server.
  visits = 0;
  #lines = [];
  #rest = "";
  #fail;
  // failed rejects when the person does not get back to the program, which would
  // wait in vain then.
  failed = new Promise((_, reject) => (this.#fail = reject));

  constructor() {
    this.failed.catch(() => {});
  }

  watch(stderr) {
    stderr.setEncoding("utf8").on("data", (text) => {
      const lines = (this.#rest + text).split("\n");
      this.#rest = lines.pop();
      this.#lines.push(...lines);
      for (const word of lines.flatMap((line) => line.split(/\s+/))) {
        if (word.startsWith(`${cell.issuer}/authorize?`)) this.#visit(word);
      }
    });
  }

  // errors returns the lines that tell of errors.
  errors() {
    return [...this.#lines, this.#rest].filter((line) => /error/i.test(line)).join("\n");
  }

  async #visit(url) {
    this.visits++;
    try {
      await listening(new URL(new URL(url).searchParams.get("redirect_uri")));
      await control("open", url);
    } catch (error) {
      this.#fail(error);
    }
  }
}

// listening returns when the program's listener is up. Programs may print the URL
// first: no person is that quick.
async function listening({ hostname, port }) {
  for (let i = 0; i < LISTENER_TRIES; i++) {
    const answered = await new Promise((resolve) => {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.on("connect", () => resolve(socket.destroy())).on("error", () => resolve());
    });
    if (answered) return;
    await new Promise((resolve) => setTimeout(resolve, LISTENER_PAUSE_MS));
  }
  throw new Error(`nobody listens at ${hostname}:${port}`);
}
