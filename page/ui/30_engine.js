// SPDX-License-Identifier: Apache-2.0
// The simulator in its worker, which is restarted as often as needed and receives questions as messages.

const kit = {
  url: "", // URL of the worker's script
  engine: null, // a promise of the engine for workers: {packed}, and also {module} once a worker has compiled it
  files: [], // {name, text, key, value}, in the main simulator's order
};

/// Returns the text of a block of index.html, and empties the block, because the text is large.
function blockText(name) {
  const block = $(`block-${name}`);
  if (!block) {
    throw new Error("the page is incomplete; load it again");
  }
  const text = block.textContent;
  block.textContent = "";
  return text;
}

/// Prepares the worker's script and the engine. The engine follows this script in the document, so that the page
/// appears first. All of the engine has arrived once the document is parsed.
function openKit() {
  kit.url = URL.createObjectURL(new Blob([blockText("worker")], { type: "text/javascript" }));
  const parsed = new Promise((resolve) =>
    document.readyState === "loading" ? addEventListener("DOMContentLoaded", resolve, { once: true }) : resolve(),
  );
  kit.engine = parsed.then(() => ({ packed: blockText("engine") }));
  kit.engine.catch(() => {}); // Every simulator reports the failure itself.
}

/// A refused request, whose sentence is for the user, or a worker that ended.
class EngineError extends Error {
  constructor(sentence, ended = false) {
    super(sentence);
    this.ended = ended;
  }
}

class Simulator {
  constructor() {
    this.start();
  }

  start() {
    this.waiting = new Map();
    this.next = 1;
    this.seen = 0; // number of kit.files that this worker has
    this.alias = new Map(); // maps a file's value in the main simulator to its value in this one
    this.prepared = Promise.resolve();
    this.failed = false;
    const worker = new Worker(kit.url);
    this.worker = worker;
    let isBorn = null;
    this.born = new Promise((resolve) => (isBorn = resolve));
    worker.onmessage = ({ data }) => {
      if (data.born) {
        isBorn();
      } else if (data.ready) {
        kit.engine = data.module ? Promise.resolve({ module: data.module }) : kit.engine;
      } else if (data.id === undefined) {
        this.fail(data.error);
      } else {
        this.hear(data);
      }
    };
    worker.onerror = (event) => {
      event.preventDefault();
      this.fail(event.message || "the worker did not start");
    };
    kit.engine.then(
      (engine) => worker.postMessage(engine),
      (error) => worker === this.worker && this.fail(error.message),
    );
  }

  /// Called if the worker did not start: waiting requests get the error, and the next request tries again.
  fail(sentence) {
    this.failed = true;
    this.end(new EngineError(sentence, true));
  }

  hear({ id, answer, error, ended }) {
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    if (error === undefined) {
      waiting?.resolve(answer);
    } else {
      waiting?.reject(new EngineError(error, ended));
    }
    if (ended) {
      this.restart("the simulator was restarted");
    }
  }

  end(error) {
    this.worker.terminate();
    this.waiting.forEach(({ reject }) => reject(error));
  }
  /// Starts another worker. This also cancels a request, because a running engine cannot be interrupted.
  restart(why) {
    this.end(new EngineError(why, true));
    this.start();
  }

  raw(question) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, ...question });
    });
  }

  /// Sends the user's files that the worker lacks, before a request that may use them.
  prepare() {
    this.prepared = this.prepared.then(async () => {
      while (this.seen < kit.files.length) {
        const { name, text, value } = kit.files[this.seen++];
        this.alias.set(value, (await this.raw({ ask: "file", name, text })).value);
      }
    });
    return this.prepared;
  }

  /// A worker that is still starting keeps requests until it is ready.
  async ask(question) {
    this.failed && this.start();
    if (this.seen < kit.files.length) {
      await this.prepare();
    }
    const settings =
      question.settings && Object.fromEntries(Object.entries(question.settings).map(([key, text]) => [key, this.alias.get(text) ?? text]));
    return this.raw(settings ? { ...question, settings } : question);
  }

  async file(name, text) {
    this.failed && this.start();
    await this.prepare();
    const { key, value } = await this.raw({ ask: "file", name, text });
    kit.files.push({ name, text, key, value });
    this.seen = kit.files.length;
    return { key, value };
  }
}

/// Turns the path of a dropped file into one that a user can type.
const shownPath = (text) => String(text).replace(/\/files\/\d+\//g, "");
