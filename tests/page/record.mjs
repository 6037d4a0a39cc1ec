// SPDX-License-Identifier: Apache-2.0
// Records the native program's answers for fake_engine.js: `node record.mjs COMMFUSE-SIM OUTPUT.wasm`.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [program, output] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "commfuse-record-"));
const presets = {
  model: "llama-3.1-70b",
  hardware: "h100-sxm",
  scope: "mlp",
  ranks: "8",
  batch: "1",
  seq: "4096",
  dtype: "bf16",
  link_bandwidth: "x1",
  network_bandwidth: "x1",
  jitter: "none",
  as: "none",
};
const run = (...words) => execFileSync(program, words, { encoding: "utf8", maxBuffer: 1 << 28 });
const flags = (settings) => Object.entries(settings).flatMap(([key, value]) => [`--${key.replaceAll("_", "-")}`, value]);
const keyOf = (settings) =>
  Object.entries({ ...presets, ...settings })
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(" ");

/// Returns the sentence below a table, on one line.
function verdictOf(table) {
  const lines = table.split("\n");
  const at = lines.findIndex((line) => /^  (Tie: |\S.* wins? \(|(Overlap (pays|does not pay)|Too close to call): )/.test(line));
  const end = lines.findIndex((line, i) => i > at && !line.trim());
  return at < 0
    ? ""
    : lines
        .slice(at, end)
        .map((line) => line.trim())
        .join(" ");
}

/// Returns the op timelines of each schedule's first rank. The trace does not mark the critical path, so compute ops
/// represent it.
function timelinesOf(trace) {
  const groups = new Map();
  const ps = (us) => Math.round(us * 1e6);
  const kinds = ["essential", "local", "communication"];
  for (const event of JSON.parse(trace).traceEvents) {
    if (event.name === "process_name") {
      const [label, rank] = event.args.name.split(" \u00b7 rank ");
      groups.set(event.pid, { label, rank: Number(rank), lanes: [], ops: [], labels: [], laneOf: new Map() });
    } else if (event.name === "thread_name") {
      const group = groups.get(event.pid);
      group.laneOf.set(event.tid, group.lanes.push(event.args.name) - 1);
    } else if (event.ph === "X" && groups.get(event.pid).rank === 0) {
      const group = groups.get(event.pid);
      const label = group.labels.includes(event.name) ? group.labels.indexOf(event.name) : group.labels.push(event.name) - 1;
      group.ops.push([
        group.laneOf.get(event.tid),
        ps(event.ts),
        ps(event.ts) + ps(event.dur),
        kinds.indexOf(event.cat),
        label,
        event.cat === "essential" ? 1 : 0,
      ]);
    }
  }
  const everyGroup = [...groups.values()];
  return everyGroup
    .filter((group) => group.rank === 0)
    .map(({ label, lanes, ops, labels }, row) => ({
      row,
      label,
      ranks: everyGroup.filter((group) => group.label === label).length,
      rank: 0,
      makespan_ps: Math.max(...ops.map((op) => op[2])),
      lanes,
      kinds,
      labels,
      ops,
    }));
}

function point(settings, withTimelines) {
  const result = spawnSync(program, ["run", ...flags(settings), "-o", "json"], { encoding: "utf8", maxBuffer: 1 << 28 });
  if (result.status !== 0) {
    return { error: result.stderr.trim() };
  }
  const trace = join(folder, "trace.json");
  const table = run("run", ...flags(settings), ...(withTimelines ? ["--trace", trace] : []));
  return {
    json: result.stdout,
    verdict: verdictOf(table),
    command: `commfuse-sim run ${flags(settings).join(" ")}`,
    timelines: withTimelines ? timelinesOf(readFileSync(trace, "utf8")) : [],
  };
}

function cellsOf(line) {
  return line
    .trim()
    .match(/("[^"]*"|[^,]*)(,|$)/g)
    .map((cell) => cell.replace(/,$/, "").replace(/^"|"$/g, ""));
}

function listOf(what) {
  const [head, ...rows] = run("list", what, "-o", "csv").trim().split("\n").map(cellsOf);
  const words = (cells) =>
    cells.length === 1
      ? cells[0]
      : cells
          .map((cell, i) => cell && `${cell} ${head[i + 1].startsWith("what") ? "" : head[i + 1]}`.trim())
          .filter(Boolean)
          .join(", ");
  return rows.map(([name, ...cells]) => ({ name, words: words(cells.slice(0, head.length - 1)) }));
}

/// Returns a WebAssembly module that contains only a section named "recorded".
function wasmOf(text) {
  const leb = (size) => (size < 128 ? [size] : [(size & 127) | 128, ...leb(size >>> 7)]);
  const name = Buffer.from("recorded");
  const content = Buffer.concat([Buffer.from(leb(name.length)), name, Buffer.from(text)]);
  return Buffer.concat([Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]), Buffer.from([0, ...leb(content.length)]), content]);
}

const points = {};
const record = (settings, withTimelines = false) => {
  points[keyOf(settings)] = point(settings, withTimelines);
};
for (const seq of ["512", "1024", "2048", "4096", "8192", "16384", "32768", "65536"]) {
  for (const ranks of ["2", "4", "8", "16"]) {
    record({ seq, ranks }, ranks === "8");
  }
}
for (const seq of ["512", "1024", "2048", "4096", "8192", "16384", "32768", "65536"]) {
  record({ scope: "down", seq }, true);
}
for (const seq of ["32", "64", "128", "256"]) {
  record({ scope: "down", seq }, true);
}
for (const [scope, seq] of [
  ["mlp", "4096"],
  ["mlp", "8192"],
  ["down", "8192"],
]) {
  points[keyOf({ scope, seq, jitter: "default" })] = point({ scope, seq, jitter: "default", samples: "400" }, false);
}
record({ hardware: "dgx-h100-x2", ranks: "16" }, true);
record({ scope: "prefill" });
record({ link_bandwidth: "x0.5" });
record({ link_bandwidth: "x2" });

// Points of the page without a link, and points that users reach from there.
for (const seq of ["512", "1024", "2048", "4096", "8192", "16384", "32768"]) {
  for (const ranks of ["2", "4", "8"]) {
    record({ as: "all", seq, ranks }, ranks === "8");
  }
}
record({ as: "all", scope: "down", seq: "8192" }, true);
record({ as: "flux,te" }, true);
record({ as: "flux", scope: "down" }, true);
record({ as: "vllm_gemm_rs", scope: "down" }, true);
record({ as: "all", scope: "attention" }, true);
record({ as: "all", link_bandwidth: "x0.5" });
record({ as: "all", link_bandwidth: "x2" });
points[keyOf({ as: "all", jitter: "default" })] = point({ as: "all", jitter: "default", samples: "400" }, false);

const scopes = listOf("scopes").map((scope) => ({ ...scope, whole: ["step", "prefill", "decode"].includes(scope.name) }));
const strategies = listOf("strategies");
/// Implementations in the form that the engine returns.
const implementations = run("list", "implementations", "-o", "csv")
  .trim()
  .split("\n")
  .slice(1)
  .map(cellsOf)
  .map(([name, implemented, , measured, words]) => ({ name, implements: implemented, measured, words }));
const start = {
  version: "0.0 recorded",
  model_version: JSON.parse(points[keyOf({})].json)[0].model_version,
  models: listOf("models"),
  hardware: listOf("hardware"),
  clusters: listOf("clusters"),
  implementations,
  scopes,
  strategies,
  fields: [
    ...Object.entries(presets).map(([key, preset]) => ({
      key,
      words: key,
      preset,
      choices: key === "dtype" ? ["bf16", "fp16", "fp32", "fp8"] : null,
    })),
    { key: "interference", words: "How communication slows compute", preset: "static", choices: ["none", "static", "dynamic"] },
    {
      key: "launch",
      words: "stream: one launch per op; eager: from Python; graph: one CUDA graph",
      preset: "stream",
      choices: ["stream", "eager", "graph"],
    },
    { key: "samples", words: "Runs to sample under jitter", preset: "1000", choices: null },
  ],
};
const why = {};
for (const { name } of strategies) {
  if (name !== "tokenweave") {
    why[name] = { json: run("why", "--strategy", name, "-o", "json") };
  }
}
for (const { implements: implemented, strategy } of JSON.parse(points[keyOf({ as: "all" })].json)) {
  if (implemented) {
    why[`as:${strategy}`] = { json: run("why", "--as", strategy, "--strategy", "fused_kernel", "-o", "json") };
  }
}
const words = ["--model", "llama-3.1-70b", "--tokens", "2T", "--gpus", "h100", "--price", "2.80", "--deadline", "90d"];
const json = run("plan", ...words, "-o", "json");
const plan = { json, text: JSON.parse(json).verdict, command: `commfuse-sim plan ${words.join(" ")}` };
writeFileSync(output, wasmOf(JSON.stringify({ presets, start, points, why, plan })));
rmSync(folder, { recursive: true, force: true });
