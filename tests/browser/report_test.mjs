// SPDX-License-Identifier: Apache-2.0
// Opens a report from disk and operates it: `node report_test.mjs CHROMIUM FOLDER`; report_test.sh makes the report and
// its inputs. Exits with 1 if a check fails. FOLDER/pictures receives screenshots of every section, light and dark, for
// people to look at.
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Browser, Checks } from "./browser.mjs";
import { checkFits, checkInputs, checkMeasured } from "./measured_checks.mjs";
import { checkPrint } from "./print_checks.mjs";
import { checkTimeline, inked, middleOf } from "./timeline_checks.mjs";

const [program, folder] = process.argv.slice(2);
const report = resolve(folder, "report.html");
const pictures = join(folder, "pictures");
mkdirSync(pictures, { recursive: true });
const checks = new Checks();
const sections = ["verdict", "ahead", "time", "point", "measured", "results", "fits", "inputs", "words", "again", "about"];

async function opened(browser, dark) {
  const page = await browser.page();
  await page.size(1280, 900, dark);
  await page.open(pathToFileURL(report).href);
  await page.until('document.documentElement.dataset.report === "ready"');
  return page;
}

/// Scrolls to every figure, because figures are drawn when they come into view.
async function drawAll(page) {
  const ids = await page.value("[...commfuseReport.figures.keys()]");
  for (const id of ids) {
    await page.value(`document.querySelector('figure[data-figure="${id}"]').scrollIntoView({ behavior: "instant", block: "center" })`);
    await page.until(`commfuseReport.charts.has(${JSON.stringify(id)})`, 10);
  }
  await page.value('document.getElementById("all-rows").scrollIntoView({ behavior: "instant" })');
  await page.until("commfuseReport.table");
  await page.value("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
  return ids;
}

/// Returns the number of series: one per mark, except that neighbouring boxes, cells or texts share one.
const countOf = (marks) =>
  marks.reduce((count, mark, i) => count + (["box", "cell", "text"].includes(mark.kind) && i > 0 && marks[i - 1].kind === mark.kind ? 0 : 1), 0);

async function checkCharts(page, ids) {
  for (const id of ids) {
    const marks = await page.value(`commfuseReport.figures.get("${id}").marks.map((mark) => ({ kind: mark.kind }))`);
    const series = await page.value(`commfuseReport.charts.get("${id}").chart.getOption().series.length`);
    checks.equal(series, countOf(marks), `series of ${id}`);
    const share = await page.value(inked(`document.querySelector('figure[data-figure="${id}"] canvas')`));
    checks.that(share > 0.01, `${id} is drawn: ${share} of its pixels are not background`);
    const buttons = await page.value(`[...document.querySelectorAll('figure[data-figure="${id}"] .tools button')].map((b) => b.textContent)`);
    checks.that(buttons.includes("SVG") && buttons.includes("CSV"), `${id} can be saved as SVG and CSV`);
  }
}

async function checkSaving(page) {
  const saved = await page.value(`(() => { const blobs = []; const make = URL.createObjectURL; URL.createObjectURL = (blob) => { blobs.push(blob.text()); return make(blob); };
    for (const b of document.querySelectorAll("figure .tools button")) if (["SVG", "CSV"].includes(b.textContent)) b.click();
    return Promise.all(blobs).then((texts) => texts.map((text) => {
      if (!text.startsWith("<svg")) return text.split("\\r\\n").length > 2;
      const parsed = new DOMParser().parseFromString(text, "image/svg+xml"); return !parsed.querySelector("parsererror") && parsed.documentElement.querySelectorAll("rect,path").length > 2; })); })()`);
  checks.that(saved.length > 4 && saved.every(Boolean), `every figure is saved whole: ${saved}`);
}

async function checkZoom(page, ids) {
  for (const id of ids) {
    if (!(await page.value(`commfuseReport.charts.get("${id}").chart.getOption().dataZoom.length`))) {
      continue;
    }
    const zoom = `commfuseReport.charts.get("${id}").chart.getOption().dataZoom[0]`;
    const box = await middleOf(page, `figure[data-figure="${id}"] canvas`);
    await page.mouse("mouseMoved", box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse("mouseWheel", box.x + box.width / 2, box.y + box.height / 2, { deltaX: 0, deltaY: -200, modifiers: 2 });
    await page.until(`${zoom}.end - ${zoom}.start < 99`, 5);
    await page.value(`[...document.querySelectorAll('figure[data-figure="${id}"] .tools button')].find((b) => b.textContent === "Reset").click()`);
    await page.until(`${zoom}.end - ${zoom}.start > 99.9`, 5);
    await page.value(`document.querySelector('figure[data-figure="${id}"] .cf-live').focus()`);
    await page.key("ArrowRight");
    const tips = await page.value(`commfuseReport.figures.get("${id}").marks.some((m) => m.tip || m.tips)`);
    checks.that(!tips || (await page.value('document.getElementById("announced").textContent')).length > 10, `${id} is announced to screen readers`);
  }
}

/// Returns the rows of a CSV text by column name, with the quotes around cells removed.
function csvRows(text) {
  const [head, ...lines] = text.trimEnd().split(/\r?\n/).map((line) => line.match(/("([^"]|"")*"|[^,]*)(,|$)/g).map((cell) => cell.replace(/,$/, "").replace(/^"|"$/g, "")));
  return lines.map((cells) => Object.fromEntries(head.map((name, i) => [name, cells[i]])));
}

async function checkTable(page) {
  await page.value('document.getElementById("all-rows").scrollIntoView({ behavior: "instant" })');
  await page.until("commfuseReport.table");
  const csv = csvRows(readFileSync(join(folder, "rows.csv"), "utf8"));
  const saved = csvRows(await page.value("commfuseReport.table.csv()"));
  checks.equal(saved.length, csv.length, "rows of the table");
  for (const name of ["makespan_us", "compute_us", "slicing_us", "stretch_us", "local_us", "exposed_us", "head_us", "bubble_us", "tail_us", "mfu"]) {
    const wrong = csv.filter((row, i) => name in saved[i] && row[name] !== "" && Number(row[name]) !== Number(saved[i][name]));
    checks.equal(wrong.length, 0, `${name} is the same in the page and in the CSV`);
  }
  checks.equal(await page.value('csvOf(["a"], [["=1+1"], ["-0.5"], ["-x,y"], [-2]])'), "a\r\n'=1+1\r\n-0.5\r\n\"'-x,y\"\r\n-2\r\n", "no text is a formula");
  const shown = await page.value('commfuseReport.table.columns.map((c) => commfuseReport.table.shown(c, 0))');
  const first = await page.value('[...document.querySelectorAll("#first-rows tbody tr:not(.point)")][0].innerText.trim().split(/\\s*\\t\\s*/)');
  const at = await page.value('commfuseReport.table.columns.findIndex((c) => c.name === "makespan_us")');
  checks.that((await page.value('document.querySelector("#first-rows").textContent')).includes(shown[at]), `the two tables show the same digits: ${shown[at]} in ${first}`);
  const marks = await page.value('[...document.querySelectorAll("table.grid tbody th .mark")].map((m) => m.textContent)');
  const front = await page.value("[...commfuseReport.table.block.data.front]");
  checks.equal(marks, front.slice(0, marks.length).map((place) => ["", "\u25b8", "\u2248"][place]), "the marks of winners and ties that the text above the table explains");
  for (const name of ["commfuse", "serial"]) { // The label of commfuse has options.
    await page.value(`(() => { const t = commfuseReport.table; t.filterBox.value = "strategy=${name}"; t.filterBox.dispatchEvent(new Event("input")); })()`);
    const named = csv.filter((row) => row.strategy === name).length;
    checks.equal(await page.value("commfuseReport.table.rows.length"), named, `rows behind the filter strategy=${name}`);
  }
  for (const [filter, words] of [["strategy=nothing", "no rows"], ["foo>1", "no rows: unknown column foo"], ["mfu>high", "no rows: high is not a number"]]) {
    await page.value(`(() => { const t = commfuseReport.table; t.filterBox.value = "${filter}"; t.filterBox.dispatchEvent(new Event("input")); })()`);
    checks.equal(await page.value("commfuseReport.table.count.textContent"), words, `the words next to the filter ${filter}`);
  }
  await page.value('(() => { const t = commfuseReport.table; t.filterBox.value = ""; t.filter(""); })()');
  await page.value('[...document.querySelectorAll("table.grid th button")].find((b) => b.textContent === "Time").click()');
  checks.that(await page.value('(() => { const t = commfuseReport.table; const d = t.block.data.makespan_us; const v = [...t.rows].map((r) => d[r]); return v.every((time, i) => i === 0 || !(v[i - 1] > time)); })()'), "sorted by time");
  checks.equal(await page.value(`document.querySelector('table.grid th[aria-sort="ascending"]').textContent.startsWith("Time")`), true, "the heading shows the order");
  await page.value('(() => { const t = commfuseReport.table; t.filterBox.value = ""; t.filter(""); })()');
}

async function checkText(page) {
  checks.equal(await page.value("globalThis.hacked"), undefined, "no text became a script");
  const policy = await page.value(`document.querySelector('meta[http-equiv="Content-Security-Policy"]').content`);
  checks.that(policy.includes("default-src 'none'") && !/script-src[^;]*unsafe/.test(policy), "the policy names its scripts");
  await page.value('document.body.append(Object.assign(document.createElement("script"), { textContent: "globalThis.injected = 1" }))');
  checks.equal(await page.value("globalThis.injected"), undefined, "another script does not run");
  page.errors = page.errors.filter((text) => !/Content Security Policy/.test(text)); // This test itself caused that error.
}

async function checkNames(page) {
  const nameless = await page.value(`[...document.querySelectorAll("button,canvas[tabindex],input,[role=img]")].filter((e) =>
    !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim() || e.closest("label"))).map((e) => e.outerHTML.slice(0, 80))`);
  checks.equal(nameless, [], "every control has a name");
}

/// Nothing below the table moves when its rows appear, so links to sections lead to the right place.
async function checkLinks(browser) {
  const page = await opened(browser, false);
  const before = await page.value("document.documentElement.scrollHeight");
  await page.value('document.getElementById("all-rows").scrollIntoView({ behavior: "instant" })');
  await page.until("commfuseReport.table");
  const after = await page.value("document.documentElement.scrollHeight");
  checks.that(Math.abs(after - before) < 100, `the page keeps its height when the table appears: ${before}, then ${after}`);
  checks.that(await page.value('document.getElementById("first-rows").getClientRects().length === 0'), "the static rows are hidden");
  checks.that(await page.value('[...document.querySelectorAll("nav a")].every((a) => document.querySelector(a.hash).textContent === a.textContent)'), "links have the text of their headings");
}

/// On a telephone only tables scroll sideways, and lines in headings of figures have several words.
async function checkTelephone(page) {
  await page.size(390, 844, false);
  checks.that((await page.value("document.documentElement.scrollWidth")) <= 390, "the page is no wider than a telephone");
  const narrow = await page.value(`[...document.querySelectorAll("figcaption > span")].filter((e) => e.getClientRects().length > 0 && e.getBoundingClientRect().width < 240).map((e) => e.textContent)`);
  checks.equal(narrow, [], "figures with headings in a narrow column");
  const heads = await page.value(`commfuseReport.timelines[0].rows.filter((row) => row.head).map(({ words }) => ({ words, width: commfuseReport.timelines[0].canvas.clientWidth }))`);
  checks.that(heads.length > 2 && heads.every(({ words }) => /^[0-9.]+ (ms|\u00b5s) \u00b7 MFU/.test(words.facts)), `time and MFU of every schedule: ${JSON.stringify(heads)}`);
  const pen = "commfuseReport.timelines[0].pen";
  checks.that(await page.value(`commfuseReport.timelines[0].rows.filter((row) => row.head).every(({ words }) => { ${pen}.font = '600 13px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
    return words.lines.every((line) => ${pen}.measureText(line).width <= commfuseReport.timelines[0].canvas.clientWidth - 16); })`), "no schedule name extends beyond the timeline");
  await page.picture(join(pictures, "telephone.png"));
  await page.size(1280, 900, false);
}

async function takePictures(page, theme) {
  await page.value("scrollTo(0, 0)");
  await page.picture(join(pictures, `top-${theme}.png`));
  const ids = await page.value('[...document.querySelectorAll("main section")].map((s) => s.getAttribute("aria-labelledby"))');
  checks.equal(ids, sections, "the sections of the page");
  for (const id of ids) {
    await page.picture(join(pictures, `${id}-${theme}.png`), `section[aria-labelledby="${id}"]`);
  }
}

checks.that(statSync(report).size < 1e6, `a report with little data has less than a megabyte: ${statSync(report).size}`);
const browser = new Browser(program);
try {
  for (const theme of ["light", "dark"]) {
    const page = await opened(browser, theme === "dark");
    checks.equal(await page.value("commfuseReport.failures"), [], `parts that failed, ${theme}`);
    const ids = await drawAll(page);
    await checkCharts(page, ids);
    await takePictures(page, theme);
    if (theme === "light") {
      await checkSaving(page);
      await checkTimeline(page, checks);
      await checkMeasured(page, checks, folder);
      await checkFits(page, checks, folder);
      await checkInputs(page, checks);
      await checkZoom(page, ids);
      await checkTable(page);
      await checkNames(page);
      await checkText(page);
      await checkTelephone(page);
      await checkLinks(browser);
    }
    checks.equal(page.errors, [], `errors on the console, ${theme}`);
    await checkPrint(page, checks, theme === "dark", pictures);
    checks.equal(page.requests.filter((url) => url !== pathToFileURL(report).href), [], `requests, ${theme}`);
  }
} catch (error) {
  checks.that(false, error.stack);
} finally {
  await browser.close();
}
console.log(`${checks.done - checks.failures.length} passed, ${checks.failures.length} failed`);
process.exitCode = checks.failures.length === 0 ? 0 : 1;
