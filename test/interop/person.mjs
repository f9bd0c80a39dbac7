// A person with a browser that runs no scripts: cookies and forms. It follows
// redirects within one origin and stops where a page leads to another one.

const MAX_PAGES = 12;
const CONSENT_PAUSE_MS = 700; // the server refuses answers younger than 600 ms

export class Person {
  #cookies = new Map();

  constructor(email, password) {
    this.email = email;
    this.password = password;
  }

  // authorize walks from an authorization request to the URL at which the
  // browser would leave for the client, and returns that URL.
  async authorize(authorizationURL) {
    let page = await this.#send(authorizationURL);
    for (let i = 0; i < MAX_PAGES; i++) {
      if (page.leaves) return page.leaves;
      const signIn = formOf(page, "/sign-in");
      const consent = formOf(page, "/consent");
      if (page.status === 200 && signIn) {
        page = await this.#submit(page, signIn, { username: this.email, password: this.password });
      } else if (page.status === 200 && consent) {
        await new Promise((resolve) => setTimeout(resolve, CONSENT_PAUSE_MS));
        page = await this.#submit(page, consent, { decision: "allow" });
      } else {
        throw new Error(`${page.url.origin}${page.url.pathname} answered ${page.status}: ${textOf(page.body)}`);
      }
    }
    throw new Error("the pages never come to an end");
  }

  #submit(page, form, fill) {
    const values = new URLSearchParams(form.values.filter(([name]) => !(name in fill)));
    for (const [name, value] of Object.entries(fill)) values.append(name, value);
    return this.#send(new URL(form.action, page.url), values);
  }

  async #send(target, form) {
    let url = new URL(target);
    for (let i = 0; i < MAX_PAGES; i++) {
      const headers = { accept: "text/html", cookie: this.#cookieHeader(url) };
      if (form) Object.assign(headers, { origin: url.origin, "sec-fetch-site": "same-origin" });
      const response = await fetch(url, { method: form ? "POST" : "GET", body: form, headers, redirect: "manual" });
      this.#keepCookies(url, response);
      const body = await response.text();
      const page = { url, status: response.status, body, forms: readForms(body), leaves: leavesFor(url, response) };
      if (response.status < 300 || response.status >= 400) return page;
      if (page.leaves.origin !== url.origin) return page;
      url = page.leaves;
      form = undefined;
    }
    throw new Error("too many redirects");
  }

  #cookieHeader(url) {
    return [...(this.#cookies.get(url.hostname) ?? [])].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  #keepCookies(url, response) {
    const jar = this.#cookies.get(url.hostname) ?? new Map();
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(";").map((part) => part.trim());
      const [name, value] = [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)];
      if (attributes.some((a) => /^max-age=(0|-\d+)$/i.test(a))) jar.delete(name);
      else jar.set(name, value);
    }
    this.#cookies.set(url.hostname, jar);
  }
}

// leavesFor returns the target of a redirect or of a Refresh header ("0; url=…").
function leavesFor(url, response) {
  const location = response.status >= 300 && response.status < 400 && response.headers.get("location");
  const target = location || response.headers.get("refresh")?.split("url=")[1];
  return target ? new URL(target, url) : undefined;
}

function formOf(page, path) {
  return page.forms.find((form) => new URL(form.action, page.url).pathname.endsWith(path));
}

function readForms(html) {
  return [...html.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/gi)].map(([, attributes, inner]) => ({
    action: attribute(attributes, "action") ?? "",
    values: [...inner.matchAll(/<input\b([^>]*)>/gi)].flatMap(([, input]) => readInput(input)),
  }));
}

// readInput returns what an input sends as it stands: no buttons, and boxes
// only when they are ticked.
function readInput(input) {
  const [name, type] = [attribute(input, "name"), attribute(input, "type") ?? "text"];
  if (!name || ["submit", "button", "image", "reset"].includes(type)) return [];
  if (["checkbox", "radio"].includes(type) && !/\schecked\b/i.test(input)) return [];
  return [[name, attribute(input, "value") ?? ""]];
}

function attribute(text, name) {
  const found = text.match(new RegExp(`\\b${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`, "i"));
  return found && decode(found[1] ?? found[2]);
}

function decode(text) {
  return text
    .replace(/&#(\d+);/g, (_, n) => String.fromCodePoint(Number(n)))
    .replace(/&#x([0-9a-f]+);/gi, (_, n) => String.fromCodePoint(parseInt(n, 16)))
    .replace(/&quot;/g, '"').replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
}

function textOf(html) {
  return html.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").trim().slice(0, 300);
}
