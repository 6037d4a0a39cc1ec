// SPDX-License-Identifier: Apache-2.0
// Measures how fast a report opens and its timeline moves: `node report_bench.mjs CHROMIUM REPORT.html`. Prints times
// and has no limits.
import { statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Browser } from "./browser.mjs";

const [program, report] = process.argv.slice(2);
const browser = new Browser(program);
try {
  const page = await browser.page();
  await page.size(1280, 900, false);
  const start = performance.now();
  await page.open(pathToFileURL(report).href);
  await page.until('document.documentElement.dataset.report === "ready"', 60);
  const ready = performance.now() - start;
  console.log(`file: ${(statSync(report).size / 1e6).toFixed(2)} MB`);
  const paint = await page.value('performance.getEntriesByName("first-contentful-paint")[0]?.startTime');
  console.log(`opened: first paint after ${Math.round(paint)} ms, everything ready after ${Math.round(ready)} ms`);
  const table = performance.now();
  await page.value('document.getElementById("all-rows").scrollIntoView({ behavior: "instant" })');
  await page.until("commfuseReport.table", 60);
  console.log(`table: ${await page.value("commfuseReport.table.block.rows")} rows, ${Math.round(performance.now() - table)} ms after scrolling to it`);
  for (let i = 0; i < (await page.value("commfuseReport.timelines.length")); ++i) {
    const timeline = `commfuseReport.timelines[${i}]`;
    const timing = await page.value(`(async () => {
      const t = ${timeline};
      for (const folded of document.querySelectorAll("details:has(canvas)")) folded.open = true;
      t.canvas.scrollIntoView({ behavior: "instant", block: "center" });
      t.all = true; t.choose(); t.draw();
      const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
      await frame(); await frame();
      const begin = performance.now(); t.draw(); t.canvas.getContext("2d").getImageData(0, 0, 1, 1);
      const paint = performance.now() - begin;
      t.zoom(0.25); await frame();
      const frames = 60; const from = performance.now();
      for (let n = 0; n < frames; ++n) { t.pan(n % 20 < 10 ? 0.03 : -0.03); await frame(); }
      const each = (performance.now() - from) / frames;
      return { bars: t.block.data.start.length, lanes: t.rows.length, paint, each };
    })()`);
    console.log(`timeline ${i + 1}: ${timing.bars} bars on ${timing.lanes} rows paint in ${timing.paint.toFixed(1)} ms; a pan takes ${timing.each.toFixed(1)} ms, ${(1000 / timing.each).toFixed(0)} per second`);
  }
} finally {
  await browser.close();
}
