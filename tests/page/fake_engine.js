// SPDX-License-Identifier: Apache-2.0
// Imitates the engine: the wasm contains only a section of JSON that record.mjs wrote, with the recorded answers.
// deno-lint-ignore no-unused-vars
var CommfuseEngine = async ({ wasmBinary, instantiateWasm, printErr }) => {
  const module = await (instantiateWasm
    ? new Promise((resolve) => instantiateWasm({}, (instance, code) => resolve(code)))
    : WebAssembly.compile(wasmBinary));
  const recorded = JSON.parse(new TextDecoder().decode(WebAssembly.Module.customSections(module, "recorded")[0]));
  const memory = new Uint8Array(1 << 24);
  const half = memory.length / 2;
  let files = 0;
  const number = (value) => String(value).replace(/^(\d+)K$/, (_, count) => count * 1024);
  const keyOf = (settings) =>
    Object.entries({ ...recorded.presets, ...settings })
      .filter(([key]) => key in recorded.presets)
      .map(([key, value]) => `${key}=${number(value)}`)
      .sort()
      .join(" ");
  const point = ({ settings, timelines }) => {
    if (settings.model === "abort") {
      printErr("a made-up check failed");
      throw new Error("aborted");
    }
    const recordedPoint = recorded.points[keyOf({ ...settings, model: settings.model.startsWith("/files") ? "llama-3.1-70b" : settings.model })];
    if (!recordedPoint) {
      return { error: `${keyOf(settings)} was not recorded` };
    }
    return recordedPoint.error ? recordedPoint : { answer: { ...recordedPoint, timelines: timelines ? recordedPoint.timelines : [] } };
  };
  const file = ({ name, text }) => {
    if (!/\S/.test(text) || text.includes("mistake")) {
      return { error: `${name}:1:1: unknown key 'mistake'; known keys: schema, name` };
    }
    return { answer: { key: "model", value: `/files/${++files}/${name}` } };
  };
  const answers = {
    start: () => ({ answer: recorded.start }),
    point,
    file,
    why: ({ strategy, implementation }) => {
      const id = implementation ? `as:${implementation}` : strategy;
      return recorded.why[id] ? { answer: recorded.why[id] } : { error: `${id} was not recorded` };
    },
    plan: () => ({ answer: recorded.plan }),
  };
  return {
    HEAPU8: memory,
    _malloc: () => 8,
    _free: () => {},
    _commfuse_ask: (place) => {
      const question = JSON.parse(new TextDecoder().decode(memory.subarray(place, memory.indexOf(0, place))));
      const bytes = new TextEncoder().encode(JSON.stringify(answers[question.ask](question)));
      memory.set(bytes, half);
      memory[half + bytes.length] = 0;
      return half;
    },
  };
};
