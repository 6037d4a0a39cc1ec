// SPDX-License-Identifier: Apache-2.0
// `node points.mjs PROGRAM ENGINE COUNT`: sends seeded random points to the program and to the page's engine; both must
// return identical bytes. ENGINE is a folder with engine.js and engine.wasm.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [program, folder, count] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const require = createRequire(import.meta.url);
const engine = await require(`${folder}/engine.js`)({ wasmBinary: readFileSync(`${folder}/engine.wasm`) });
const ask = (question) => {
  const reply = JSON.parse(engine.ccall("commfuse_ask", "string", ["string"], [JSON.stringify(question)]));
  return reply.answer ?? { error: reply.error };
};

// xorshift32, which draws the same points on every machine.
let state = 2463534242;
const below = (n) => {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % n;
};
const choice_of = (choices) => choices[below(choices.length)];

const start = ask({ ask: "start" });
const models = start.models.map((model) => model.name);
const machines = start.hardware.map((machine) => machine.name);
const clusters = start.clusters.map((machine) => machine.name);
const layers = start.scopes.filter((scope) => !scope.whole).map((scope) => scope.name);

const layer_point = () => ({
  model: choice_of(models),
  hardware: choice_of(machines),
  scope: choice_of(layers),
  ranks: choice_of(["2", "4", "8"]),
  seq: String(1024 * (1 + below(64))),
  batch: choice_of(["1", "2", "4"]),
  link_bandwidth: choice_of(["x1", "x0.5", "x2"]),
  ...(below(4) === 0 ? { jitter: "default", samples: "100", seed: String(below(1000)) } : {}),
  ...(below(4) === 0 ? { as: choice_of(["all", "all", "all", "flux", "two_streams"]) } : {}),
  ...(below(4) === 0 ? { interference: choice_of(["none", "static", "dynamic"]) } : {}),
});
const whole_point = () => ({
  model: choice_of(models),
  hardware: choice_of(clusters),
  scope: choice_of(["step", "prefill", "decode"]),
  ranks: "8",
  seq: choice_of(["2048", "4096", "8192"]),
  batch: "8",
});

const flag_of = (key) => `--${key.replaceAll("_", "-")}`;
let same = 0;
let refused = 0;
for (let i = 0; i < count; ++i) {
  const settings = below(10) === 0 ? whole_point() : layer_point();
  const words = ["run", ...Object.entries(settings).flatMap(([key, value]) => [flag_of(key), value]), "-o", "json"];
  let printed = "";
  let mistake = "";
  try {
    printed = execFileSync(program, words, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    mistake = error.stderr;
  }
  const answer = ask({ ask: "point", settings });
  const agrees = mistake ? mistake.includes(answer.error ?? "\0") : answer.json === printed;
  if (!agrees) {
    console.error(`point ${i}: ${program} ${words.join(" ")}`);
    console.error(`  the program: ${(mistake || printed).slice(0, 600)}`);
    console.error(`  the page:    ${(answer.error ?? answer.json ?? "").slice(0, 600)}`);
    process.exit(1);
  }
  mistake ? ++refused : ++same;
}
console.log(`${same} points have equal bytes, ${refused} are refused with the same message`);
if (same < count / 2) {
  console.error("fewer than half of the points have a result");
  process.exit(1);
}
