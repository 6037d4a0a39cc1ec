// SPDX-License-Identifier: Apache-2.0
// The simulator in its worker: started as often as needed, asked by messages.

const kit = { url: "", packed: "", files: [] }; // files: {name, text, key, value}, as the main simulator took them

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) {
    return Uint8Array.fromBase64(text);
  }
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) {
    bytes[i] = binary.charCodeAt(i);
  }
  return bytes;
}

async function unpacked(name) {
  const block = $(`block-${name}`);
  const stream = new Blob([bytesOfBase64(block.textContent)]).stream().pipeThrough(new DecompressionStream("gzip"));
  block.textContent = ""; // It is large and has done its work.
  return new Response(stream).arrayBuffer();
}

/// The engine itself is unpacked by its worker, beside the page that is being built.
async function openKit() {
  const worker = await unpacked("worker");
  kit.packed = $("block-engine").textContent;
  $("block-engine").textContent = "";
  kit.url = URL.createObjectURL(new Blob([worker], { type: "text/javascript" }));
}

/// An ask that was refused (its sentence is for the user), or a worker that ended.
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
    this.seen = 0; // of kit.files
    this.alias = new Map(); // a file's value in the main simulator: its value here
    this.prepared = Promise.resolve();
    const worker = new Worker(kit.url);
    this.worker = worker;
    this.ready = new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => {
        if (data.ready) {
          resolve();
        } else if (data.id === undefined) {
          reject(new EngineError(data.error, true));
        } else {
          this.hear(data);
        }
      };
      worker.onerror = (event) => {
        event.preventDefault();
        const error = new EngineError(event.message || "the worker did not start", true);
        reject(error);
        this.end(error);
      };
    });
    this.ready.catch(() => {});
    worker.postMessage({ packed: kit.packed });
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
  /// Also how an ask is cancelled: an engine cannot be interrupted.
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

  /// Every simulator has the user's files before it is asked about them.
  prepare() {
    this.prepared = this.prepared.then(async () => {
      while (this.seen < kit.files.length) {
        const { name, text, value } = kit.files[this.seen++];
        this.alias.set(value, (await this.raw({ ask: "file", name, text })).value);
      }
    });
    return this.prepared;
  }

  async ask(question) {
    const { worker } = this;
    await this.ready.catch((error) => {
      worker === this.worker && this.restart("the simulator was restarted"); // The next ask tries again.
      throw error;
    });
    if (this.seen < kit.files.length) {
      await this.prepare();
    }
    const settings =
      question.settings && Object.fromEntries(Object.entries(question.settings).map(([key, text]) => [key, this.alias.get(text) ?? text]));
    return this.raw(settings ? { ...question, settings } : question);
  }

  async file(name, text) {
    await this.ready;
    await this.prepare();
    const { key, value } = await this.raw({ ask: "file", name, text });
    kit.files.push({ name, text, key, value });
    this.seen = kit.files.length;
    return { key, value };
  }
}

/// A path of a dropped file as a user can write it.
const shownPath = (text) => String(text).replace(/\/files\/\d+\//g, "");
