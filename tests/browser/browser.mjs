// SPDX-License-Identifier: Apache-2.0
// Controls a headless Chromium over a pipe in its own protocol, without a library, port or network.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Browser {
  #next = 1;
  #waiting = new Map();
  #listeners = [];
  #rest = "";

  constructor(program) {
    this.folder = mkdtempSync(join(tmpdir(), "commfuse-browser-"));
    const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb", "--no-first-run",
      "--disable-dev-shm-usage", "--disable-background-networking", "--remote-debugging-pipe", `--user-data-dir=${this.folder}`, "about:blank"];
    this.process = spawn(program, flags, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.process.stdio[4].on("data", (data) => this.#read(data.toString("utf8")));
    this.process.on("exit", () => this.#waiting.forEach(({ reject }) => reject(new Error("the browser exited"))));
  }

  #read(text) {
    const messages = (this.#rest + text).split("\0");
    this.#rest = messages.pop();
    for (const message of messages.map((text) => JSON.parse(text))) {
      const waiting = this.#waiting.get(message.id);
      if (waiting) {
        this.#waiting.delete(message.id);
        message.error ? waiting.reject(new Error(`${waiting.method}: ${message.error.message}`)) : waiting.resolve(message.result);
      } else {
        this.#listeners.forEach((listen) => listen(message));
      }
    }
  }

  send(method, params = {}, sessionId = undefined) {
    const id = this.#next++;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    return new Promise((resolve, reject) => this.#waiting.set(id, { method, resolve, reject }));
  }
  on(listen) {
    this.#listeners.push(listen);
  }

  async page() {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId);
    await page.begin();
    return page;
  }

  async close() {
    await this.send("Browser.close").catch(() => {});
    await new Promise((resolve) => (this.process.exitCode === null ? this.process.once("exit", resolve) : resolve()));
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

export class Page {
  errors = []; // console errors and uncaught exceptions
  requests = []; // URLs of all requests, also of the one for the page, except blob:, data: and about:

  constructor(browser, session) {
    this.browser = browser;
    this.session = session;
  }
  send(method, params) {
    return this.browser.send(method, params, this.session);
  }

  async begin() {
    this.browser.on((message) => message.sessionId === this.session && this.#heard(message));
    for (const domain of ["Page", "Runtime", "Log", "Network"]) {
      await this.send(`${domain}.enable`);
    }
  }
  #heard({ method, params }) {
    if (method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(params.type)) {
      this.errors.push(params.args.map((argument) => argument.value ?? argument.description).join(" "));
    } else if (method === "Runtime.exceptionThrown") {
      this.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    } else if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) {
      this.errors.push(params.entry.text);
    } else if (method === "Network.requestWillBeSent" && !/^(blob|data|about):/.test(params.request.url)) {
      this.requests.push(params.request.url);
    } else if (method === "Page.loadEventFired") {
      this.loaded?.();
    }
  }

  async size(width, height, dark) {
    await this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
  }
  async open(url) {
    const loaded = new Promise((resolve) => (this.loaded = resolve));
    await this.send("Page.navigate", { url });
    await loaded;
  }
  /// Returns the value of an expression, and awaits it if it is a promise.
  async value(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) {
      throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    }
    return result.value;
  }
  /// Waits until an expression holds, evaluating it every 20 ms; throws after `seconds`.
  async until(expression, seconds = 30) {
    const holds = await this.value(`new Promise((resolve) => {
      const start = performance.now();
      const poll = () => { let now = false; try { now = !!(${expression}); } catch {}
        now ? resolve(true) : performance.now() - start > ${seconds * 1000} ? resolve(false) : setTimeout(poll, 20); };
      poll(); })`);
    if (!holds) {
      throw new Error(`still false after ${seconds} s: ${expression}`);
    }
  }
  mouse(type, x, y, more = {}) {
    return this.send("Input.dispatchMouseEvent", { type, x, y, ...more });
  }
  async key(key, more = {}) {
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, ...more });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, ...more });
  }
  /// Saves a picture of an element, or of the visible part of the page.
  async picture(file, selector = null) {
    const clip = selector && (await this.value(`(() => { const e = document.querySelector(${JSON.stringify(selector)});
      const b = e.getBoundingClientRect(); return { x: b.x + scrollX, y: b.y + scrollY, width: b.width, height: Math.min(b.height, 3000), scale: 1 }; })()`));
    const { data } = await this.send("Page.captureScreenshot", { format: "png", captureBeyondViewport: true, ...(clip ? { clip } : {}) });
    writeFileSync(file, Buffer.from(data, "base64"));
  }
}

/// Collects the failures of all checks.
export class Checks {
  failures = [];
  done = 0;
  that(holds, sentence) {
    ++this.done;
    if (!holds) {
      this.failures.push(sentence);
      console.log(`FAILED: ${sentence}`);
    }
  }
  equal(actual, expected, what) {
    this.that(JSON.stringify(actual) === JSON.stringify(expected), `${what}: ${JSON.stringify(actual)} is not ${JSON.stringify(expected)}`);
  }
}
