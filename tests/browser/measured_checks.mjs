// SPDX-License-Identifier: Apache-2.0
// Compares measurements and sources of inputs in a report with the files from which it was made.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const figure = (id) => `commfuseReport.figures.get("${id}")`;

/// The report shows the medians of the record, and its last timeline shows the record's traced iteration, op by op.
export async function checkMeasured(page, checks, folder) {
  const { runs } = JSON.parse(readFileSync(join(folder, "record.json"), "utf8"));
  const shown = await page.value(`${figure("agreement")}.data`);
  const at = shown.columns.indexOf("median_us");
  const middle = (times) => [...times].sort((a, b) => a - b)[(times.length - 1) / 2] / 1e6;
  const wanted = runs.map((run) => middle(run.makespans_ps));
  checks.equal(shown.rows.map((row) => Number(row[at])).sort(), wanted.sort(), "medians of the record");
  const marks = await page.value(`${figure("agreement")}.marks.filter((mark) => mark.kind === "points").length`);
  checks.equal(marks, runs.length, "one mark per measured schedule");

  const timeline = "commfuseReport.timelines.at(-1)";
  const lanes = await page.value(`(() => { const t = ${timeline}; const { start, length } = t.block.data;
    return t.lanes.map((l) => ({ run: l.run, rank: l.rank, kind: t.block.panels[l.panel].kind,
      spans: [...start.slice(l.from, l.to)].map((from, i) => [from, from + length[l.from + i]]) })); })()`);
  const spansOf = (spans) => spans.map(([rank, , from, to]) => [rank, from, to].join()).sort();
  const measured = lanes.filter((lane) => lane.kind === "measured");
  const bars = measured.flatMap((lane) => lane.spans.map((span) => [lane.rank, ...span].join())).sort();
  checks.equal(bars, spansOf(runs.flatMap((run) => run.spans_ps)), "the timeline has the measured spans");
  checks.equal(new Set(measured.map((lane) => lane.run)).size, runs.length, "the timeline has every measured schedule");
  const elsewhere = await page.value('commfuseReport.timelines.slice(0, -1).some((t) => t.block.panels.some((panel) => panel.kind === "measured"))');
  checks.that(!elsewhere, "a measured iteration is shown only at its own point, even if other points have the same schedules");
  const barText = await page.value(`(() => { const t = ${timeline}; t.all = true; t.choose();
    const row = t.rows.findIndex((r) => !r.head && t.block.panels[r.lane.panel].kind === "measured");
    const lines = t.tellBar({ row, bar: t.rows[row].lane.from }); t.all = false; t.choose(); t.draw(); return lines.join(); })()`);
  checks.that(/, measured/.test(barText) && !/predicted/.test(barText), `a measured bar is described as measured: ${barText}`);
}

/// Every row of the tables is in the report, and some rows are held out.
export async function checkFits(page, checks, folder) {
  for (const [id, file] of [["fit-1", "exchanges.csv"], ["fit-2", "collectives.csv"]]) {
    const times = readFileSync(join(folder, file), "utf8").trim().split("\n").slice(1).map((line) => Number(line.split(",").at(-1)));
    const shown = await page.value(`${figure(id)}.data`);
    checks.equal(shown.rows.map((row) => Number(row[0])).sort(), times.sort(), `${id} shows the times of ${file}`);
    const names = await page.value(`${figure(id)}.marks.filter((mark) => mark.kind === "points").map((mark) => mark.name)`);
    checks.equal(names, ["fitted", "held out"], `both kinds of rows of ${id}`);
    const errors = shown.rows.map(([measured, fitted]) => Math.abs(fitted / measured - 1)).sort((a, b) => a - b);
    checks.that(errors[Math.floor(errors.length / 2)] < 0.15, `${id} fits rows that vary by 6%; median error: ${errors[Math.floor(errors.length / 2)]}`);
  }
}

/// Every parameter states its kind and its source.
export async function checkInputs(page, checks) {
  const rows = await page.value('[...document.querySelectorAll("table.parameters tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent))');
  const others = await page.value('document.querySelector(".scroll:has(table.parameters) + .note")?.textContent.split(",").length ?? 0');
  checks.that(rows.length > 2 && rows.length + others > 10, `parameters are listed: ${rows.length}, and only by name: ${others}`);
  const vague = rows.filter(([, kind, , , source]) => !["prior", "published", "fitted", "measured"].includes(kind) || source.length < 4);
  checks.equal(vague, [], "parameters without a kind or a source");
}
