// SPDX-License-Identifier: Apache-2.0
// Bundles charts/ and the parts of ECharts that it uses into one gzipped script: `node build.mjs OUTPUT`. Runs in a
// copy of this folder that has node_modules; the repository contains no part of the library.
import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const library = "node_modules/echarts";
const { version } = JSON.parse(readFileSync(`${library}/package.json`, "utf8"));
const notice = readFileSync(`${library}/NOTICE`, "utf8").trim();
const banner = `/*! Holds Apache ECharts ${version}, Apache-2.0 (https://www.apache.org/licenses/LICENSE-2.0), cut down to
what is used, with zrender (BSD-3-Clause) and parts of d3 (BSD-3-Clause) and tslib (0BSD).
${notice}
*/`;

// Apache-2.0 requires a library's NOTICE in every copy. A report is a copy, so the page shows these texts.
const licences = [
  `Apache ECharts ${version}, Apache License 2.0\n${notice}`,
  readFileSync(`${library}/LICENSE`, "utf8").trim(),
  `zrender, BSD 3-Clause\n${readFileSync("node_modules/zrender/LICENSE", "utf8").trim()}`,
  `tslib, 0BSD\n${readFileSync("node_modules/tslib/LICENSE.txt", "utf8").trim()}`,
].join("\n\n");

const result = await build({
  entryPoints: ["charts/charts.mjs"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  legalComments: "eof",
  banner: { js: banner },
  define: {
    __ECHARTS_VERSION__: JSON.stringify(version),
    __LICENCES__: JSON.stringify(licences),
    "process.env.NODE_ENV": '"production"',
  },
  write: false,
});
// No text inside a <script> element may close it.
const text = result.outputFiles[0].text.replaceAll("</script", "<\\/script").replaceAll("]]>", "]]\\>");
writeFileSync(process.argv[2], gzipSync(text, { level: 9 }));
