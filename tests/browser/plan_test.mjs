// SPDX-License-Identifier: Apache-2.0
// Tests plan reports: `node plan_test.mjs CHROMIUM FOLDER`, with FOLDER/met/plan.html and FOLDER/missed/plan.html.
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Browser, Checks } from "./browser.mjs";

const [program, folder] = process.argv.slice(2);
const pictures = join(folder, "pictures");
const checks = new Checks();

/// Texts of a drawing that overlap its points or bars.
const covered = `[...document.querySelectorAll("svg.cf-figure")].filter((e) => e.getClientRects().length > 0).flatMap((svg) => {
  const data = [...svg.querySelectorAll(".cf-point,.cf-bar")].map((e) => e.getBoundingClientRect());
  return [...svg.querySelectorAll("text")].filter((text) => { const t = text.getBoundingClientRect();
    return data.some((d) => d.left < t.right && t.left < d.right && d.top < t.bottom && t.top < d.bottom); }).map((text) => text.textContent); })`;

/// Pixels from the middle of a role's last mark to the deadline line, in the drawing for telephones.
const distance = (role) => `(() => { const svg = [...document.querySelectorAll("svg.cf-figure")].find((e) => e.getAttribute("aria-labelledby").startsWith("plan-days-narrow"));
  const mark = [...svg.querySelectorAll(".cf-point.cf-${role}")].at(-1).getBoundingClientRect();
  const line = svg.querySelector("path.cf-line-ink").getBoundingClientRect(); const box = svg.getBoundingClientRect();
  return { gap: line.top - (mark.top + mark.bottom) / 2, inside: mark.left >= box.left && mark.right <= box.right, size: mark.width }; })()`;

async function checkWords(page, name) {
  const tiles = await page.value('[...document.querySelectorAll(".tile dt")].map((e) => e.textContent)');
  const lead = await page.value('document.querySelector(".lead").textContent');
  const captions = await page.value('[...document.querySelectorAll("caption")].map((e) => e.textContent)');
  checks.that(!captions.includes("Kinds of GPUs compared"), "one kind of GPU is not compared with itself");
  if (name === "met") {
    checks.equal(tiles, ["GPUs", "Days", "Cost", "Chance of meeting the deadline"], "tiles answer the question");
    checks.that(/^\d+ h100 take [\d.]+ days and \$[\d.]+M\. The chance of meeting the deadline is \d+%\.$/.test(lead), `the verdict is short: ${lead}`);
    checks.equal(await page.value('document.querySelectorAll("tr.fastest").length'), 1, "the answer is marked among all numbers");
  } else {
    checks.equal(tiles, ["Needs", "Shortest run"], "tiles of a missed deadline");
    checks.that(/^No option meets the limits: the deadline needs about [\d,]+ h100\.$/.test(lead), `a missed deadline states what it needs: ${lead}`);
  }
  const text = await page.value('document.querySelector("main").innerText');
  checks.that(!/\d %/.test(text), "percentages have no space");
}

async function checkTelephone(page, name) {
  checks.that((await page.value("document.documentElement.scrollWidth")) <= 390, `${name}: the page is no wider than a telephone`);
  const { gap, inside, size } = await page.value(distance(name === "met" ? "ink" : "exposed"));
  checks.that(inside && size >= 12, `${name}: the mark is on the drawing and large: ${size}`);
  checks.that(name === "met" ? gap <= -6 : Math.abs(gap) < 1.5, `${name}: an answer is clear of the deadline line, a need is on the line: ${gap}`);
  const hidden = await page.value(`[...document.querySelectorAll(".plan")].filter((e) => e.scrollWidth > e.clientWidth + 1 && !getComputedStyle(e).backgroundImage.includes("gradient")).map((e) => e.ariaLabel)`);
  checks.equal(hidden, [], `${name}: tables that extend beyond the right edge show this`);
}

async function checkPaper(page, name, dark) {
  const [wide, high] = [210 - 24, 297 - 24].map((millimetres) => Math.floor((millimetres / 25.4) * 96));
  await page.send("Emulation.setDeviceMetricsOverride", { width: wide, height: high, deviceScaleFactor: 1, mobile: false });
  await page.send("Emulation.setEmulatedMedia", { media: "print", features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
  const cut = await page.value(`[...document.querySelectorAll("table,svg.cf-figure,pre,.tile")].filter((e) => e.getClientRects().length > 0 && e.getBoundingClientRect().right > ${wide} + 0.5).map((e) => e.textContent.slice(0, 60))`);
  checks.equal(cut, [], `${name}: cut off on paper`);
  checks.equal(await page.value('[...new Set([...document.querySelectorAll(".plan")].map((e) => getComputedStyle(e).breakInside))]'), ["avoid"], `${name}: no sheet ends between a table's head and its rows`);
  checks.equal(await page.value("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)", `${name}: paper stays white`);
  const { data } = await page.send("Page.printToPDF", { preferCSSPageSize: true, printBackground: true });
  const pdf = Buffer.from(data, "base64");
  writeFileSync(join(pictures, `${name}${dark ? "-dark" : ""}.pdf`), pdf);
  const sheets = pdf.toString("latin1").match(/\/Type\s*\/Page\b/g).length;
  checks.that(sheets <= 6, `${name}: a plan prints on at most six sheets: ${sheets}`);
}

const browser = new Browser(program);
try {
  for (const name of ["met", "missed"]) {
    for (const [width, height, dark] of [
      [1280, 900, false],
      [390, 844, false],
      [390, 844, true],
    ]) {
      const page = await browser.page();
      await page.size(width, height, dark);
      await page.open(pathToFileURL(resolve(folder, name, "plan.html")).href);
      checks.equal(await page.value("getComputedStyle(document.body).backgroundColor"), dark ? "rgb(20, 24, 29)" : "rgb(255, 255, 255)", `${name}: ground, dark: ${dark}`);
      checks.equal(await page.value(covered), [], `${name}: words over data at ${width}`);
      await page.picture(join(pictures, `${name}-${width}${dark ? "-dark" : ""}.png`), ".page");
      await (width < 700 ? checkTelephone(page, name) : checkWords(page, name));
      await checkPaper(page, name, dark);
      checks.equal(page.errors, [], `${name}: errors on the console`);
    }
  }
} catch (error) {
  checks.that(false, error.stack);
} finally {
  await browser.close();
}
console.log(`${checks.done - checks.failures.length} passed, ${checks.failures.length} failed`);
process.exitCode = checks.failures.length === 0 ? 0 : 1;
