// SPDX-License-Identifier: Apache-2.0
// Checks a printed report: A4 portrait with margins of 12 mm, as its style sheet requests.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const pixels = (millimetres) => Math.floor((millimetres / 25.4) * 96);
const wide = pixels(210 - 24);
const high = pixels(297 - 24);

/// Parts of the page that would be cut off on a sheet of this width and height.
const cut = `(() => {
  const shown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility === "visible";
  return [...document.querySelectorAll("figure,figure svg.cf-figure,table,pre,.tile")].filter(shown).map((e) => ({ e, box: e.getBoundingClientRect() }))
    .filter(({ e, box }) => box.left < -0.5 || box.right > ${wide} + 0.5 || (e.matches("figure,.tile") && box.height > ${high}))
    .map(({ e, box }) => (e.closest("figure")?.querySelector("figcaption")?.textContent ?? e.textContent.slice(0, 60)) + ": " +
      [box.left, box.right, box.height].map(Math.round)); })()`;

/// Timelines that do not fit on one sheet together with their heading.
const parted = `[...document.querySelectorAll("h3 + figure")].filter((e) => {
  const heading = e.previousElementSibling.getBoundingClientRect();
  return e.getBoundingClientRect().bottom - heading.top > ${high}; }).map((e) => e.previousElementSibling.textContent)`;

export async function checkPrint(page, checks, dark, pictures) {
  const scheme = { name: "prefers-color-scheme", value: dark ? "dark" : "light" };
  await page.send("Emulation.setDeviceMetricsOverride", { width: wide, height: high, deviceScaleFactor: 1, mobile: false });
  await page.send("Emulation.setEmulatedMedia", { media: "print", features: [scheme] });
  checks.equal(await page.value(cut), [], `cut off on paper, dark: ${dark}`);
  checks.equal(await page.value(parted), [], "figures fit a sheet with their heading");
  checks.equal(await page.value("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)", "paper stays white");
  const inks = await page.value(`[...new Set([...document.querySelectorAll("svg.cf-figure text")].map((e) => getComputedStyle(e).fill))]`);
  const luminous = inks.filter((ink) => ink.match(/\d+/g).slice(0, 3).every((part) => Number(part) > 200) && ink !== "rgb(255, 255, 255)");
  checks.equal(luminous, [], "no light ink on white");
  const figures = await page.value(`[...document.querySelectorAll("figure")].filter((e) => e.getClientRects().length > 0).map((e) => [".cf-live", ".cf-static", ".tools"].map((part) =>
    (e.querySelector(part)?.getClientRects().length ?? 0) > 0).join())`);
  checks.equal([...new Set(figures)], ["false,true,false"], "static drawings and no buttons on paper");
  checks.equal(await page.value('[...document.querySelectorAll("input,nav")].filter((e) => e.getClientRects().length).length'), 0, "no input fields on paper");
  const again = await page.value('(({ breakBefore, breakInside }) => [breakBefore, breakInside])(getComputedStyle(document.getElementById("again").closest("section")))');
  checks.equal(again, ["avoid", "avoid"], "the command is not on a separate sheet");
  const { data } = await page.send("Page.printToPDF", { preferCSSPageSize: true, printBackground: true });
  const pdf = Buffer.from(data, "base64");
  writeFileSync(join(pictures, `print${dark ? "-dark" : ""}.pdf`), pdf);
  checks.that(pdf.includes("/MediaBox [0 0 595") || pdf.includes("/MediaBox [0 0 594"), "sheets are A4, portrait");
  const sheets = pdf.toString("latin1").match(/\/Type\s*\/Page\b/g).length;
  checks.that(sheets <= 6, `a report prints on at most six sheets: ${sheets}`);
}
