// SPDX-License-Identifier: Apache-2.0
// Runs in a worker behind the engine's loader. First message: {packed: base64 of gzip}; then {id, ask, ...}, each answered by
// {id, answer} or {id, error}. An engine that aborts answers {id, error, ended: true} and must not be asked again.
"use strict";

let engine = null;
const complaints = []; // The last lines that the engine printed as errors.

function complain(line) {
  complaints.push(String(line));
  if (complaints.length > 5) {
    complaints.shift();
  }
}

async function unpackedEngine(packed) {
  const binary = Uint8Array.fromBase64 ? null : atob(packed);
  const bytes = binary === null ? Uint8Array.fromBase64(packed) : new Uint8Array(binary.length);
  for (let i = 0; binary !== null && i < binary.length; ++i) {
    bytes[i] = binary.charCodeAt(i);
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/// Needs of the engine: HEAPU8, _malloc, _free and _commfuse_ask.
function askEngine(question) {
  const bytes = new TextEncoder().encode(JSON.stringify(question));
  const place = engine._malloc(bytes.length + 1);
  engine.HEAPU8.set(bytes, place);
  engine.HEAPU8[place + bytes.length] = 0;
  const from = engine._commfuse_ask(place) >>> 0;
  engine._free(place);
  const to = engine.HEAPU8.indexOf(0, from);
  return JSON.parse(new TextDecoder().decode(engine.HEAPU8.subarray(from, to)));
}

self.onmessage = async ({ data }) => {
  if (data.packed) {
    try {
      const wasmBinary = await unpackedEngine(data.packed);
      engine = await CommfuseEngine({ wasmBinary, print: () => {}, printErr: complain });
      self.postMessage({ ready: true });
    } catch (error) {
      self.postMessage({ ended: true, error: `it did not start: ${error.message ?? error}` });
    }
    return;
  }
  try {
    const said = askEngine(data);
    if (typeof said.error === "string") {
      self.postMessage({ id: data.id, error: said.error });
    } else {
      self.postMessage({ id: data.id, answer: said.answer ?? said });
    }
  } catch (error) {
    self.postMessage({ id: data.id, ended: true, error: complaints.join(" ") || String(error.message ?? error) });
  }
};
