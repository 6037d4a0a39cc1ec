// SPDX-License-Identifier: Apache-2.0
// Joins page/ui and an engine into one HTML file: `node build.mjs ENGINE.wasm ENGINE.js OUTPUT.html`. Needs only node.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const folder = join(dirname(fileURLToPath(import.meta.url)), "ui");
const [wasm, loader, output] = process.argv.slice(2);
if (!output) {
  console.error("usage: node build.mjs ENGINE.wasm ENGINE.js OUTPUT.html");
  process.exit(2);
}

/// Removes indentation and lines that are only a comment: a reader of the source needs them, a browser does not.
function lean(source, name) {
  const lines = source.split("\n").map((line) => line.trim());
  if (lines.some((line) => !line.startsWith("//") && (line.split("`").length - 1) % 2 === 1)) {
    throw new Error(`${name} has a template literal of several lines, whose spaces would be lost; join short ones`);
  }
  const kept = lines.filter((line) => line !== "" && !line.startsWith("//") && !/^\/\*.*\*\/$/.test(line));
  // A line that opens a block or ends a statement needs no line end, unless a comment follows.
  return kept.map((line) => (/[({[,;]$/.test(line) && !line.includes("//") ? line : `${line}\n`)).join("").trimEnd();
}

/// Removes the spaces around signs, of which a style has thousands. None of our quoted texts contains such a sign.
const leanStyle = (source, name) => lean(source, name).replace(/\s*([{};,])\s*/g, "$1").replace(/:\s+/g, ":").replace(/;}/g, "}");

const LICENCE = "SPDX-License-Identifier: Apache-2.0";
const text = (name) => readFileSync(join(folder, name), "utf8");
const packed = (bytes) => gzipSync(bytes, { level: 9 }).toString("base64");
const digest = (content) => `'sha256-${createHash("sha256").update(content).digest("base64")}'`;

/// The scripts 10_… to 90_…, in the order of their names.
const script = readdirSync(folder)
  .filter((name) => /^\d\d_.*\.js$/.test(name))
  .sort()
  .reduce((all, name) => `${all}\n${lean(text(name), name)}`, `// ${LICENCE}`);
const palette = readFileSync(join(folder, "../../reports/assets/palette.css"), "utf8");
const style = `/* ${LICENCE} */\n${leanStyle(palette, "palette.css")}${leanStyle(text("page.css"), "page.css")}`;
for (const [name, content] of [
  ["a script", script],
  ["page.css", style],
]) {
  if (/<\/(script|style)/i.test(content)) {
    throw new Error(`${name} of page/ui closes its own element; write "<\\/" instead`);
  }
}

// Only this script and this style run; workers come from blobs, and nothing is fetched.
const policy = [
  "default-src 'none'",
  `script-src ${digest(script)} 'wasm-unsafe-eval'`,
  "worker-src blob:",
  `style-src ${digest(style)}`,
  "img-src data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/// Returns what the engine offers: lists of models and machines, and settings. The engine is queried once, for
/// everyone who opens the page.
async function startAnswer() {
  const bind = new Function("require", "__filename", "__dirname", `${readFileSync(loader, "utf8")}\nreturn CommfuseEngine;`);
  const makeEngine = bind(createRequire(import.meta.url), resolve(loader), dirname(resolve(loader)));
  const engine = await makeEngine({ wasmBinary: readFileSync(wasm), print: () => {} });
  const question = new TextEncoder().encode('{"ask":"start"}\0');
  const place = engine._malloc(question.length);
  engine.HEAPU8.set(question, place);
  const from = engine._commfuse_ask(place) >>> 0;
  const reply = JSON.parse(new TextDecoder().decode(engine.HEAPU8.subarray(from, engine.HEAPU8.indexOf(0, from))));
  if (typeof reply.error === "string") {
    throw new Error(`the engine did not start: ${reply.error}`);
  }
  return JSON.stringify(reply.answer ?? reply);
}

// Plain text, which is read as soon as the page starts, so that the worker starts before anything is unpacked.
const start = (await startAnswer()).replaceAll("<", "\\u003c");
// The worker runs the loader and then the part that answers.
const worker = `${readFileSync(loader, "utf8")}\n${lean(text("worker.js"), "worker.js")}`;
if (/<\/script|<!--/i.test(worker)) {
  throw new Error("the engine's loader would close the element that holds it; it must contain neither </script nor <!--");
}
const parts = {
  start: () => start,
  policy,
  style: () => style,
  script: () => script,
  worker: () => worker,
  engine: () => packed(readFileSync(wasm)),
};
const page = text("index.html").replace(/\{\{(\w+)\}\}/g, (whole, name) => {
  if (!(name in parts)) {
    throw new Error(`page/ui/index.html has an unknown placeholder ${whole}`);
  }
  return typeof parts[name] === "function" ? parts[name]() : parts[name];
});
writeFileSync(output, page);
