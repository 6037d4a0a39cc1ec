// SPDX-License-Identifier: Apache-2.0
// Operates the page as a person would: `node page_test.mjs CHROMIUM FOLDER [real]`, with FOLDER/page.html. Without
// `real` the engine is recorded, and only recorded points are visited.
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Browser, Checks } from "../browser/browser.mjs";
import { inked } from "../browser/timeline_checks.mjs";
import { checkDeployed, checkFolded, checkFromLink, checkReal, checkRealParts } from "./implementation_checks.mjs";
import { checkFiles, checkGuide, checkHints, checkMap, checkNarrowGuide, checkPaper, checkPhone, checkPlan, checkSlow, checkWhy, checkWords } from "./parts_checks.mjs";

const [program, folder, kind] = process.argv.slice(2);
const real = kind === "real";
const file = join(folder, "page.html");
const url = pathToFileURL(file).href;
const checks = new Checks();
const text = (id) => `document.getElementById("${id}").textContent`;

async function opened(browser, width, height, dark, hash = "") {
  const page = await browser.page();
  await page.size(width, height, dark);
  await page.send("Emulation.setFocusEmulationEnabled", { enabled: true }); // Without this, the page does not notice that it has the focus.
  await page.open(url + hash);
  await page.until('document.documentElement.dataset.page === "ready"');
  await settled(page);
  return page;
}

/// Waits until the newest settings are answered and refined.
export async function settled(page) {
  await page.until(
    "!commfusePage.live.busy && !commfusePage.live.again && (document.getElementById('problem').hidden ? document.documentElement.dataset.refined === String(commfusePage.live.turn) : true)",
  );
}

function checkSize() {
  const html = readFileSync(file, "utf8");
  const own = [/<style>([^]*?)<\/style>/, /<script>([^]*?)<\/script>/].reduce((sum, part) => sum + part.exec(html)[1].length, 0);
  checks.that(own > 50e3 && own < 150 * 1024, `our own scripts and style stay below 150 KiB: ${own}`);
  checks.that(statSync(file).size < 2e6, `the page has at most 2 MB: ${statSync(file).size}`);
}

async function checkVerdict(page) {
  const rows = await page.value("commfusePage.live.rows");
  const time = (name) => rows.find((row) => row.strategy === name).makespan_us;
  const fastest = Math.min(...rows.filter((row) => row.strategy !== "fused_kernel").map((row) => row.makespan_us));
  const less = `${(100 * (1 - fastest / time("serial"))).toFixed(1)}%`;
  const headline = await page.value(text("headline"));
  checks.that(
    headline.startsWith("With ideal kernels overlap pays: ") && headline.includes(`${less} less time than serial (`) && headline.endsWith("sure to beat serial), for the MLP."),
    `the verdict comes first, with numbers: ${headline}`,
  );
  checks.that(
    /^Which schedule\? (Tie: |\S+ \((over )?\d+% sure\): ).* A lower bound that no implementation reaches takes [\d.]+% less time than \S+\.$/.test(
      await page.value(text("second")),
    ),
    `the second sentence is the engine's verdict: ${await page.value(text("second"))}`,
  );
  checks.equal(
    await page.value('[...document.querySelectorAll("#verdict button")].map((e) => e.textContent)'),
    ["Copy link", "Copy command"],
    "the verdict has buttons that copy the link and the command",
  );
  checks.that(
    /^llama-3\.1-70b mlp on 8 \u00d7 h100-sxm, 4K tokens: \S+ takes .* \u00b1\d+\.\d%, MFU \d+\.\d%\. The time depends on [a-z, ]+ parameters of the machine\.$/.test(
      await page.value(text("size")),
    ),
    `the line of the size has time, error and MFU: ${await page.value(text("size"))}`,
  );
  checks.that((await page.value(text("change"))).length > 20, "the page states what would change the verdict");
  const size = await page.value('parseFloat(getComputedStyle(document.getElementById("headline")).fontSize)');
  checks.that(size >= 22, `the verdict is large: ${size}px`);
  checks.that((await page.value(text("version"))).includes(", model version "), "the footer names both versions");
}

async function checkTimelines(page) {
  checks.that((await page.value(inked('document.querySelector("canvas.timeline")'))) > 0.05, "the timelines are drawn");
  const panels = await page.value(
    "commfusePage.parts.timelines.panels.map((p) => [p.row.strategy, p.lanes.length, p.lanes.some((l) => l.exposed.length > 0)])",
  );
  const names = await page.value("commfusePage.live.rows.map((row) => row.strategy)");
  checks.equal(
    panels.map(([name]) => name),
    names,
    "every schedule has a timeline on the one axis",
  );
  checks.that(panels.every(([, lanes]) => lanes > 0) && panels[0][2], "every timeline has lanes, and exposed time to hatch");
  const parts = await page.value('[...document.querySelectorAll("#bars .bar:first-of-type span")].map((e) => e.dataset.part)');
  checks.that(parts.includes("compute") && parts.includes("head") && parts.includes("tail"), `a bar shows its parts: ${parts}`);
  await page.value('document.querySelector("canvas.timeline").focus()');
  await page.key("ArrowRight");
  await page.key("ArrowRight");
  const announced = await page.value(text("announced"));
  checks.that(
    /% of the time; .* to /.test(announced) && /rank 0 of 8, lane /.test(announced) && /Begins /.test(announced),
    `a focused op is announced with its name, time and reason: ${announced}`,
  );
  checks.equal(await page.value("document.querySelector('.tip').hidden"), false, "a focused op has a tooltip");
  await page.key("ArrowDown");
  await page.until('/It is priced as GEMM .*\\. It runs in tiles of \\d+ \u00d7 /.test(document.querySelector(".tip").innerText)');
  await page.key("Escape");
  checks.equal(await page.value("document.querySelector('.tip').hidden"), true, "Escape hides the tooltip");
  const at =
    await page.value(`(() => { const t = commfusePage.parts.timelines; t.canvas.scrollIntoView({ block: "center" }); const lane = t.panels[0].lanes.find((l) => l.exposed.length > 0);
    const gap = lane.exposed.at(-1); const b = t.canvas.getBoundingClientRect(); return { x: b.x + t.xOf((gap[0] + gap[1]) / 2), y: b.y + lane.y + 8 }; })()`);
  await page.mouse("mouseMoved", at.x, at.y);
  checks.that(/^Exposed, tail: /.test(await page.value("document.querySelector('.tip').innerText")), "the tooltip of exposed time names its kind");
}

async function checkSlider(page) {
  const top = 'document.getElementById("in-seq").getBoundingClientRect().top + scrollY';
  await page.value("scrollTo(0, 0)");
  const before = await page.value(top);
  await page.value('document.getElementById("in-seq").focus()');
  await page.key("ArrowRight", { windowsVirtualKeyCode: 39 });
  await page.key("ArrowRight", { windowsVirtualKeyCode: 39 });
  await settled(page);
  checks.equal(await page.value("commfusePage.state.settings.seq"), "8192", "two key presses move the slider by two steps");
  checks.equal(await page.value("commfusePage.live.rows[0].seq"), 8192, "the newest point is shown");
  await page.value('document.getElementById("change").textContent = ""');
  checks.equal(await page.value(top), before, "the slider keeps its place when the verdict changes");
  await page.value("commfusePage.live.redraw()");
  checks.equal(
    await page.value("location.hash"),
    "#model=llama-3.1-70b&hardware=h100-sxm&scope=mlp&ranks=8&batch=1&seq=8192&dtype=bf16",
    "the link names the point",
  );
  checks.that(
    /^commfuse-sim run .*--seq (8192|8K)/.test(await page.value(text("command"))),
    `the command names the point too: ${await page.value(text("command"))}`,
  );
  await page.value('document.getElementById("copy-command").click()');
  await page.until('document.getElementById("copy-command").textContent === "Copied"', 5);
  checks.equal(await page.value('document.getElementById("in-seq").getAttribute("aria-valuetext")'), "8K", "a slider states its value");
  checks.that(
    await page.value("commfusePage.live.p99.size >= 6 && [...commfusePage.live.p99.values()].every((p) => p > 0)"),
    "p99 under jitter is added when the user pauses",
  );
  checks.that((await page.value(text("table"))).includes("p99"), "the table has p99");
}

async function checkLinks(page) {
  await page.value('location.hash = "#seq=4096&interference=none"');
  await page.value('document.getElementById("more-settings").open = true');
  await page.until('document.getElementById("in-interference")');
  checks.equal(await page.value('document.getElementById("in-interference").value'), "none", "other settings appear when their section is opened");
  await page.value('document.getElementById("more-settings").open = false');
  await page.value('location.hash = "#seq=2K&ranks=8&scope=down&nonsense=1"');
  await page.until("commfusePage.live.rows[0].scope === 'down' && commfusePage.live.rows[0].seq === 2048");
  checks.equal(
    await page.value(text("notice")),
    'This version does not recognize "nonsense=1" in the link and ignores it.',
    "an unknown key is named",
  );
  await settled(page);
  await page.value('location.hash = "#model=/files/7/mine.yaml"');
  await page.until("commfusePage.live.rows[0].scope === 'mlp'");
  checks.that((await page.value(text("notice"))).startsWith("The link needs the file mine.yaml"), "a link to a file states that it needs the file");
  await page.value('location.hash = "#ranks=16&seq=4096"');
  await page.until('!document.getElementById("problem").hidden');
  checks.equal(
    await page.value(`document.getElementById("problem").firstChild.textContent`),
    "16 ranks do not fit h100-sxm, which has 8 GPUs; choose ranks up to 8",
    "a refused point has a reason",
  );
  checks.equal(await page.value(`document.querySelector("#problem button").textContent`), "ranks 8", "a button offers a possible value");
  checks.equal(await page.value(text("headline")), "This point cannot be simulated.", "a refused point keeps no earlier verdict");
  await page.value('document.querySelector("#chips button").click()');
  checks.equal(await page.value(text("headline")), "This point cannot be simulated.", "a button of the timelines does not restore the earlier verdict");
  await page.value('document.querySelector("#chips button").click()');
  const below = 'document.getElementById("share").getBoundingClientRect().top > document.getElementById("problem").getBoundingClientRect().top';
  checks.that(await page.value(below), "the reason comes first");
  await page.value('location.hash = "#scope=prefill&seq=4096"');
  await page.until('commfusePage.live.whole && document.getElementById("problem").hidden');
  await settled(page);
  checks.equal(await page.value('document.getElementById("timelines").hidden'), true, "whole models have no timelines");
  checks.equal(await page.value(text("h-time")), "Schedules of a whole model", "the heading for whole models promises no timelines");
  checks.equal(await page.value('document.getElementById("why").parentElement.hidden'), true, "whole models have no ops to compare");
  checks.that(await page.value('document.querySelectorAll("#bars + div li").length > 0'), "a legend explains the bars");
  checks.that(/^With ideal kernels overlap pays: commfuse takes /.test(await page.value(text("headline"))), "whole models have a verdict");
  await page.value('location.hash = "#seq=4096&show=serial,commfuse"');
  await page.until("!commfusePage.live.whole");
  await settled(page);
  checks.equal(
    await page.value("commfusePage.parts.timelines.panels.map((p) => p.row.strategy)"),
    ["serial", "commfuse"],
    "a link selects the schedules that are shown",
  );
  await page.value('[...document.querySelectorAll("#chips button")].find((b) => b.textContent === "sliced").click()');
  checks.equal(await page.value("commfusePage.state.view.show"), "serial,sliced,commfuse", "buttons change the schedules that are shown");
  checks.equal(await page.value('document.querySelectorAll("#why .stale-part").length'), 0, "they do not dim the comparison");
  await page.value('location.hash = "#seq=4096"');
  await settled(page);
}

/// Unknown view parameters and settings that cannot be read are named, with a remedy.
async function checkNonsense(page) {
  await page.value('location.hash = "#seq=nonsense&show=nothing&guide=99&tab=zzz&compare=a,b&%E0%A4%A=1"');
  await page.until('!document.getElementById("problem").hidden');
  checks.equal(
    await page.value(text("notice")),
    'This version does not recognize "show=nothing", "guide=99", "tab=zzz", "compare=a,b" and "%E0%A4%A=1" in the link and ignores them.',
    "unknown view parameters are named",
  );
  checks.equal(await page.value('document.getElementById("panel-layer").hidden'), false, "unknown view parameters change nothing");
  if (real) {
    checks.equal(
      await page.value('document.getElementById("problem").firstChild.textContent'),
      "Tokens: 'nonsense' is not a whole number; write one, such as 4K",
      "the message about a setting that cannot be read names its slider",
    );
    await page.value('document.querySelector("#problem button").click()');
    await page.until('document.getElementById("problem").hidden');
    checks.equal(await page.value("commfusePage.live.rows[0].seq"), 4096, "a button restores the default of the setting");
  }
  await page.value('location.hash = "#seq=4096"');
  await page.until('document.getElementById("problem").hidden && commfusePage.live.rows[0].seq === 4096');
  await settled(page);
}

/// Checks the page while its engine is still loading, and when loading fails.
async function checkIncomplete(browser) {
  const cut = join(folder, "cut.html");
  writeFileSync(cut, readFileSync(file, "utf8").replace(/<script type="text\/plain" id="block-engine">[^]*?<\/script>/, ""));
  const page = await browser.page();
  await page.size(1280, 900, false);
  await page.open(pathToFileURL(cut).href);
  await page.until('!document.getElementById("problem").hidden');
  checks.equal(await page.value(text("problem")), "the page is incomplete; load it again", "an incomplete page is reported");
  checks.equal(await page.value(text("headline")), "The simulator did not start.", "the headline states that the simulator did not start");
  const skeleton = readFileSync(file, "utf8").split('id="block-worker"')[0];
  checks.that(
    /Once it is loaded, the first answer takes/.test(skeleton) && skeleton.length < 40e3,
    `the part that is painted first explains the wait and is small: ${skeleton.length}`,
  );
}

async function checkAbort(page) {
  await page.value('location.hash = "#model=abort"');
  await page.until('!document.getElementById("problem").hidden');
  checks.equal(
    await page.value(text("problem")),
    "The simulator stopped: a made-up check failed. It was restarted; change a setting to continue.",
    "an engine that stops is reported",
  );
  await page.value('location.hash = "#seq=8192"');
  await page.until('document.getElementById("problem").hidden && commfusePage.live.rows[0].seq === 8192');
  await settled(page);
}

async function checkReach(page, width) {
  const nameless =
    await page.value(`[...document.querySelectorAll("button,canvas[tabindex],input,select,textarea,[role=img],[role=region],progress")].filter((e) =>
    !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.labels?.length || (e.tagName !== "SELECT" && e.textContent.trim()))).map((e) => e.outerHTML.slice(0, 80))`);
  checks.equal(nameless, [], "every control has an accessible name");
  const wide = await page.value("document.documentElement.scrollWidth");
  checks.that(wide <= width, `nothing is wider than the window: ${wide} of ${width}`);
  const cut =
    await page.value(`[...document.querySelectorAll("button,h1,h2,p,label,select,.cell")].filter((e) => e.getClientRects().length && !e.matches(".unseen,.unseen *,.skip") && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline")
    .map((e) => e.textContent.slice(0, 40))`);
  checks.equal(cut, [], `no text is cut off at ${width}`);
  const small = await page.value(
    `[...document.querySelectorAll("body *")].filter((e) => e.getClientRects().length && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) && parseFloat(getComputedStyle(e).fontSize) < 13).map((e) => e.textContent.slice(0, 40))`,
  );
  checks.equal(small, [], "no text is smaller than 13 px");
}

async function checkPolicy(page) {
  const policy = await page.value(`document.querySelector('meta[http-equiv="Content-Security-Policy"]').content`);
  checks.that(
    policy.startsWith("default-src 'none'; script-src 'sha256-") && !policy.includes("unsafe-inline") && !policy.includes("'unsafe-eval'"),
    `the policy names its script: ${policy}`,
  );
  await page.value('document.body.append(Object.assign(document.createElement("script"), { textContent: "globalThis.injected = 1" }))');
  checks.equal(await page.value("globalThis.injected"), undefined, "an injected script does not run");
  page.errors = page.errors.filter((error) => !/Content Security Policy/.test(error)); // This test itself caused that error.
}

async function checkAll(page, width) {
  await checkRealParts(page, checks, settled);
  await checkDeployed(page, checks);
  await checkFromLink(page, checks, settled);
  await page.value('location.hash = "#seq=4096"');
  await page.until("commfusePage.live.rows[0].scope === 'mlp' && !commfusePage.live.settings.as");
  await settled(page);
  await checkVerdict(page);
  await checkWords(page, checks);
  await checkTimelines(page);
  await checkHints(page, checks);
  await checkSlider(page);
  await checkMap(page, checks, settled);
  await checkWhy(page, checks, settled);
  await checkSlow(page, checks);
  await checkGuide(page, checks, settled, join(folder, "pictures"));
  await checkLinks(page);
  await checkFiles(page, checks, settled, real);
  await checkNonsense(page);
  if (!real) {
    await checkAbort(page);
  }
  await checkPlan(page, checks, join(folder, "pictures"));
  await checkReach(page, width);
  await checkPolicy(page);
}

checkSize();
const browser = new Browser(program);
try {
  for (const [name, width, height, dark] of [
    ["desktop", 1280, 900, false],
    ["desktop-dark", 1280, 900, true],
    ["phone", 390, 844, false],
    ["phone-dark", 390, 844, true],
  ]) {
    const page = await opened(browser, width, height, dark);
    await page.picture(join(folder, "pictures", `${name}.png`), ".page");
    await checkReach(page, width);
    const background = await page.value("getComputedStyle(document.body).backgroundColor");
    checks.equal(background, dark ? "rgb(20, 24, 29)" : "rgb(255, 255, 255)", `background of ${name}`);
    await checkReal(page, checks);
    if (name === "desktop") {
      await checkAll(page, width);
    }
    if (width < 700) {
      await checkFolded(page, checks);
      await checkPhone(page, checks);
      await checkNarrowGuide(page, checks, settled);
    }
    if (name === "desktop-dark") {
      await checkPaper(page, checks);
    }
    checks.equal(await page.value("commfusePage.failures"), [], `no part failed, ${name}`);
    checks.equal(page.errors, [], `no errors on the console, ${name}`);
    checks.equal(
      page.requests.filter((request) => !request.startsWith(url)),
      [],
      `no requests to other addresses, ${name}`,
    );
  }
  await checkIncomplete(browser);
} catch (error) {
  checks.that(false, error.stack);
} finally {
  await browser.close();
}
console.log(`${checks.done - checks.failures.length} passed, ${checks.failures.length} failed`);
process.exitCode = checks.failures.length === 0 ? 0 : 1;
