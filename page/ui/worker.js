// SPDX-License-Identifier: Apache-2.0
// Runs in a worker after the engine's loader, and sends {born: true} when it accepts messages. One message brings the
// engine, {packed: base64 of gzip} or {module}, and is answered by {ready: true, module} (without the module if the
// browser cannot send it), or by {ended: true, error} if the engine does not start. All other messages are {id, ask,
// ...}, may come before the engine, and are answered by {id, answer} or {id, error}. An engine that aborts answers {id,
// error, ended: true} and must not be used again.
"use strict";

let engine = null;
let announceArrival = null; // called when the engine has arrived
const arrival = new Promise((resolve) => (announceArrival = resolve));
const errorLines = []; // the last lines that the engine printed as errors

function keepErrorLine(line) {
  errorLines.push(String(line));
  if (errorLines.length > 5) {
    errorLines.shift();
  }
}

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

/// Compiles while unpacking, if the browser supports that.
async function compiled(packed) {
  const bytes = bytesOfBase64(packed);
  const unpacked = () =>
    new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")), {
      headers: { "Content-Type": "application/wasm" },
    });
  try {
    return await WebAssembly.compileStreaming(unpacked());
  } catch {
    return WebAssembly.compile(await unpacked().arrayBuffer());
  }
}

/// Instantiates a module. Its loader does not report failures, so they are reported separately.
function started(module) {
  return new Promise((resolve, reject) => {
    const instantiateWasm = (imports, take) => {
      WebAssembly.instantiate(module, imports).then((instance) => take(instance, module), reject);
      return {};
    };
    CommfuseEngine({ instantiateWasm, print: () => {}, printErr: keepErrorLine }).then(resolve, reject);
  });
}

/// Reports that the engine is ready, with its module if the browser can send it, so that other workers need not
/// compile.
function share(module) {
  try {
    self.postMessage({ ready: true, module });
  } catch {
    self.postMessage({ ready: true });
  }
}

async function begin({ packed, module }) {
  try {
    const code = module ?? (await compiled(packed));
    engine = await started(code);
    announceArrival();
    share(code);
  } catch (error) {
    self.postMessage({ ended: true, error: `it did not start: ${error.message ?? error}` });
  }
}

/// Calls the engine through the members HEAPU8, _malloc, _free and _commfuse_ask of its module.
function askEngine(question) {
  const bytes = new TextEncoder().encode(JSON.stringify(question));
  const address = engine._malloc(bytes.length + 1);
  engine.HEAPU8.set(bytes, address);
  engine.HEAPU8[address + bytes.length] = 0;
  const from = engine._commfuse_ask(address) >>> 0;
  engine._free(address);
  const to = engine.HEAPU8.indexOf(0, from);
  return JSON.parse(new TextDecoder().decode(engine.HEAPU8.subarray(from, to)));
}

async function answer(question) {
  await arrival;
  const { id } = question;
  try {
    const reply = askEngine(question);
    self.postMessage(typeof reply.error === "string" ? { id, error: reply.error } : { id, answer: reply.answer ?? reply });
  } catch (error) {
    self.postMessage({ id, ended: true, error: errorLines.join(" ") || (error.message ?? "an exception without a message") });
  }
}

self.onmessage = ({ data }) => (data.ask ? answer(data) : begin(data));
self.postMessage({ born: true });
