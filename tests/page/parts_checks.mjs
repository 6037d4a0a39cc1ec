// SPDX-License-Identifier: Apache-2.0
// Checks independent parts of the page, such as map, comparison, first minute, files and training run.
import { join } from "node:path";

const text = (id) => `document.getElementById("${id}").textContent`;

export async function checkMap(page, checks, settled) {
  const cells = await page.value(
    '[...document.querySelectorAll(".cell")].map((e) => [e.dataset.cell, e.className, e.textContent, e.getAttribute("aria-label")])',
  );
  const sentence = await page.value(text("change"));
  checks.that(/^(The verdict would change: |This holds from 1K to 64K tokens)/.test(sentence), `the sentence covers three steps to each side: ${sentence}`);
  checks.equal(
    await page.value(
      "(() => { const { live, parts } = commfusePage; const { memory } = parts.map; parts.map.memory = new Map(); live.redraw(); " +
        'const sentence = document.getElementById("change").textContent; parts.map.memory = memory; live.redraw(); return sentence; })()',
    ),
    "Simulating nearby points\u2026",
    "a new verdict keeps no sentence of an earlier verdict",
  );
  checks.equal(await page.value(text("change")), sentence, "a known sentence appears immediately");
  checks.equal(
    await page.value(
      "(() => { const { map } = commfusePage.parts; const axes = map.axes.bind(map); map.axes = (across = 2) => axes(across); " +
        "const sentence = map.sentence(); delete map.axes; return sentence; })()",
    ),
    sentence,
    "a narrow map has the same sentence",
  );
  checks.equal(cells.length, 21, "seven token counts by three rank counts, for a machine of eight GPUs");
  checks.that(
    cells.every(([, , words]) => !words.includes("\u2026")),
    "every cell is simulated when the user pauses",
  );
  checks.that(
    cells.some(([, look, words, label]) => /^cell (pays\d|unclear)$/.test(look) && words.startsWith("tie") && label.includes("tie of ")),
    "ties are labelled, and coloured by whether overlap pays",
  );
  checks.that(
    cells.some(([, look, , label]) => /^cell pays[123]$/.test(look) && /wins, [+\u2212]?\d+% against serial$/.test(label)),
    "cells where overlap pays have a colour, and a label for screen readers",
  );
  checks.equal(
    await page.value('[{ pay: "loses", cost: 0.2 }, { pay: "loses", cost: 0.03 }, { pay: "unclear", gain: -0.1 }].map(lookOf)'),
    ["loses3", "loses1", "unclear"],
    "cells where overlap does not pay have other colours, by the loss",
  );
  const used = new Set(cells.map(([, look]) => look.replace(/^cell |\d$/g, "")));
  const legend = await page.value('[...document.querySelectorAll("#map .legend li")].map((e) => e.dataset.pay)');
  checks.equal([...legend].sort(), [...used].sort(), "the legend lists the colours in use");
  checks.equal(await page.value('document.querySelector(".cell[aria-current]").dataset.cell'), "8192x8", "the chosen point is marked");
  await page.value('document.querySelector(".cell[aria-current]").focus()');
  await page.key("ArrowLeft");
  checks.equal(await page.value("document.activeElement.dataset.cell"), "4096x8", "arrow keys move from cell to cell");
  await page.key("Enter", { windowsVirtualKeyCode: 13, text: "\r" });
  await settled(page);
  checks.equal(await page.value("commfusePage.state.settings.seq"), "4096", "Enter opens the point of a cell");
}

export async function checkWhy(page, checks, settled) {
  const lead = await page.value('document.querySelector("#why .lead").textContent');
  const [, fastest] = /^(\w+) takes [\d.]+\u202f\u00b5s less than serial \(\d+\.\d%\): .* less exposed/.exec(lead) ?? [];
  checks.that(fastest !== undefined, `the comparison states what differs: ${lead}`);
  const rows = await page.value('[...document.querySelectorAll("#why table:first-of-type tbody tr")].map((e) => e.textContent)');
  checks.that(
    rows.length > 8 && rows.some((row) => row.startsWith("GEMM 4096 \u00d7 ") || row.startsWith("GEMM 8192 \u00d7 ")) && !rows.some((row) => /GEMM .*\dK\b/.test(row)) && rows.some((row) => row.startsWith("exchange of ")),
    "the comparison lists every op",
  );
  await page.value(
    '(() => { const s = document.getElementById("why-second"); s.value = "sliced"; s.dispatchEvent(new Event("change")); })()',
  );
  await page.until('document.querySelector("#why .lead").textContent.includes("than sliced")');
  checks.that(await page.value(`location.hash.includes("compare=${fastest},sliced")`), "the link names both schedules");
  await settled(page);
}

/// For a slow point, the verdict appears immediately, and the map and the comparison state why they wait.
export async function checkSlow(page, checks) {
  await page.value("commfusePage.live.refineNow(() => false, false)");
  const words = (id) => page.value(`document.querySelector("#${id} .later").textContent`);
  checks.that(/^This point takes a long time, so the map is computed only when you ask for it\. Simulate .*, about \d+ s$/.test(await words("map")), "the map states why it waits");
  checks.that(/^This point takes a long time, so the comparison is computed only when you ask for it\. Simulate /.test(await words("why")), "the comparison states why it waits");
  checks.that(!(await page.value(text("change"))).startsWith("Simulating nearby"), "what would change the verdict is known");
  checks.equal(
    await page.value('(document.querySelector("#map .later button").click(), [...document.querySelectorAll(".later button")].map((e) => e.disabled))'),
    [true, true],
    "a click on either button disables both, because it simulates both parts",
  );
  await page.until('document.querySelector("#map .cell") && document.querySelector("#why .lead")');
}

/// Checks how the engine's notation, and amounts of money, are put into words. Needs no particular page.
export async function checkWords(page, checks) {
  const expectValue = (expression, expected) => page.value(`(${expression})`).then((value) => checks.equal(value, expected, expression));
  await expectValue('opTexts("gemm down.partial[0 +: 8]")', ["GEMM down.partial, parts 0\u20137", "down.partial, parts 0\u20137", "parts 0\u20137", "0\u20137"]);
  await expectValue('opText("exchange gate_up.gathered[3]")', "exchange gate_up.gathered, part 3");
  await expectValue('opText("gemm qkv[14 +: 2; 12 +: 2]")', "GEMM qkv, parts 14\u201315, 12\u201313");
  await expectValue('opTexts("reduce_scatter down")', ["reduce-scatter down", "reduce-scatter"]);
  await expectValue('opTexts("nothing")', ["nothing"]);
  await expectValue('scheduleOptions("commfuse (ring both ways, halves, g=3)").map(([name]) => name)', ["ring both ways", "halves", "g=3"]);
  await expectValue('scheduleOptions("serial")', []);
  await expectValue(
    'howText("tile 192 x 128, 4 waves, the last 86% full on 116 of 132 SMs; power sets the time")',
    "It runs in tiles of 192 \u00d7 128, in 4 waves, the last 86% full. It has 116 of 132 SMs; communication takes the others. The power limit sets its time.",
  );
  await expectValue(
    'howText("tile 64 x 128, k in 4 parts, one wave, 48% full; the k loops set the time")',
    "It runs in tiles of 64 \u00d7 128, in one wave, 48% full, with k in 4 parts. The loops over k set its time.",
  );
  await expectValue('howText("the shortest kernel sets most of the time")', "Most of its time is that of the shortest kernel.");
  await expectValue('howText("NVLink 4 on NVSwitch 3, small messages", "exchange")', "It goes over NVLink 4 on NVSwitch 3 as small messages.");
  await expectValue(
    'howText("inside the kernel that sums in the switch", "elementwise")',
    "It runs inside the kernel that sums in the switch.",
  );
  await expectValue('howText("vllm\'s own kernel", "all_reduce")', "It uses vllm's own kernel.");
  await expectValue('howText("NCCL\'s ring with LL128")', "NCCL runs it as a ring with protocol LL128.");
  await expectValue('[3e5, 1e3, 1500, 2e3, 1e6, 1.5e6, 2e9, 50].map((amount) => tickMoney(amount, "$"))', ["$300k", "$1k", "$1.5k", "$2k", "$1M", "$1.5M", "$2B", "$50"]);
  await expectValue('[0.6406, 20021.6, 999999, 1.2813e6].map((amount) => money(amount, "$"))', ["$0.64", "$20.0k", "$1.00M", "$1.28M"]);
  await expectValue("new Set(TICKS.flatMap((tick) => [1e3, 1e4, 1e5, 1e6, 1e9].map((power) => tickMoney(tick * power, \"$\")))).size", 30);
  await expectValue("[0.994, 0.995].map(sure)", ["99% sure", "over 99% sure"]); // as `run` and `plan` say it
  await expectValue("[0.004, 0.006, 0.994, 0.996].map((chance) => chanceText(chance))", ["< 1%", "1%", "99%", "> 99%"]);
  await expectValue("[0.004, 0.006, 0.994, 0.996].map(chance)", ["below 1%", "1%", "99%", "over 99%"]);
  const run = (gpus, confidence, cost, days) => ({ gpus, kind: "h100", confidence, cost: { value: cost }, days: { value: days } });
  const runs = JSON.stringify([run(8, 0.7, 20000, 37.2), run(16, 1, 20200, 18.8), run(32, 1, 20400, 9.5)]);
  await expectValue(`planHeadline(${runs}[0], { asked: { deadline_days: 40 } }, "$")`, "8 h100, 70% sure to meet the deadline: 37.2 days, $20.0k.");
  await expectValue(`planHeadline(${runs}[0], { asked: { deadline_days: null } }, "$")`, "8 h100: 37.2 days, $20.0k.");
  await expectValue(`planHeadline(${runs}[0], { asked: { deadline_days: 40, budget: 3e4 } }, "$")`, "8 h100, 70% sure to meet deadline and budget: 37.2 days, $20.0k.");
  await expectValue(`planHeadline(${runs}[0], { asked: { deadline_days: null, budget: 3e4 } }, "$")`, "8 h100, 70% sure to meet the budget: 37.2 days, $20.0k.");
  await expectValue(`surerSentence(${runs}[0], ${runs}, "$")`, "To be over 99% sure, take 16 h100 for 1.0% more money: 18.8 days, $20.2k.");
  const texts = (changes) => JSON.stringify({ tokens: "2T", gpus: "h100", price: "2.80", deadline: "90d", available: "", budget: "", ...changes });
  await expectValue(`surerSentence(${JSON.stringify(run(8, 0.7, 0, 37.2))}, ${JSON.stringify([run(16, 1, 0, 18.8)])}, "$")`, "To be over 99% sure, take 16 h100 for the same money: 18.8 days, $0.00.");
  const free = JSON.stringify([{ gpus: 8, kind: "h100", cost: { value: 0, low: 0, high: 0 }, days: { value: 10, low: 8, high: 12 } }]);
  await expectValue(`planChart(${free}, { asked: { deadline_days: 40 } }, "$").outerHTML.includes("NaN")`, false); // a price of 0
  await expectValue(`planMistake(${texts({})})`, "");
  await expectValue(`planMistake(${texts({ gpus: "1024 h100" })})`, "Kind of GPU: a plan finds how many GPUs it takes; write h100 here, and 1024 under \u201cGPUs available\u201d");
  await expectValue(`planMistake(${texts({ gpus: "256" })})`, "Kind of GPU: a plan finds how many GPUs it takes; write h100 here, and 256 under \u201cGPUs available\u201d");
  await expectValue(`planMistake(${texts({ price: "", tokens: "" })})`, "Tokens to train on is missing; write it, as in 2T\nPrice of a GPU-hour is missing; write it, as in 2.80");
  await expectValue(`planMistake(${texts({ deadline: "" })})`, "Deadline and Budget are both empty; write one, as in 90d or 2M");
  await expectValue('timeUnit(28182276).text(28182276)', "28.182\u202fs");
  await expectValue('timeUnit(9999).text(9999) + timeUnit(147120).text(147120)', "9999.0\u202f\u00b5s147.120\u202fms");
  const verdict = "Train on 256 h100 (TP 4, PP 4 with 4 pieces each, DP 16) with commfuse at 7 of 8 sites, sliced at 1: 75.3 days (61.2 to 93.4), $1.30M ($1.05M to $1.61M), $0.6477 per million tokens. The chance of meeting the deadline is 91%; serial collectives would take 12.7% longer, data slicing (CoC) 4.3%.";
  await expectValue(`planReasons(${JSON.stringify(verdict)})`, "Layout: TP 4, PP 4 with 4 pieces each, DP 16, with commfuse at 7 of 8 sites, sliced at 1, for $0.6477 per million tokens. Serial collectives would take 12.7% longer, data slicing (CoC) 4.3%.");
  const noOption = JSON.stringify({ asked: {}, verdict: "No option meets the limits: the deadline needs about 17,000 h100. For h100, the deadline binds: the shortest run takes 43.4 days on 5248 GPUs, 2.29 times the allowed 19 days." });
  await expectValue(`planHeadline(undefined, ${noOption}, "$")`, "No option meets the limits: the deadline needs about 17,000 h100.");
  await expectValue('limitWords({ asked: { deadline_days: 90, budget: 2e6 } }, "$")', "deadline, 90 days; budget, $2.00M");
  await expectValue('limitWords({ asked: { deadline_days: 1, budget: null } }, "$")', "deadline, 1 day");
  await expectValue("[74.46, 1, 0.36, 0.0371].map(daysText)", ["74.5", "1.0", "0.4", "0.037"]);
  await expectValue("[1536, 8192, 1048576, 1572864, 2097152].map(count)", ["1536", "8K", "1M", "1536K", "2M"]);
  await expectValue('["2%", "0.05", "5e-2", ""].map((share) => shareOf(share, 0.02))', [0.02, 0.05, 0.05, 0.02]);
  const whole = (strategy, time_ms, win_probability) => ({ strategy, time_ms, win_probability });
  await expectValue(`verdictsOf(${JSON.stringify([whole("serial", 105, 0.3), whole("commfuse", 100, 0.7)])})`, ["ties", "ties"]);
  await expectValue(`verdictsOf(${JSON.stringify([whole("serial", 105, 0.1), whole("commfuse", 100, 0.9)])})`, ["loses", "wins"]);
  await expectValue('["price -20 %", "links x0.5"].map((change) => changeText({ change }))', ["price \u221220%", "links \u00d70.5"]);
  await expectValue(`surerSentence(${runs}[0], ${runs}, "$", true)`, "To be over 99% sure, take 32 h100 for 2.0% more money: 9.5 days, $20.4k.");
  await expectValue('planRefusal("--gpus: unknown hardware \'zzz\'; known: a, b; a path contains \'/\'")', "Kind of GPU: unknown hardware 'zzz'; choose one of this field's list, or a short name such as h100");
  await expectValue(`surerSentence(${runs}[1], ${runs}, "$")`, "");
}

/// Explanations of terms can be opened by keyboard and by touch.
export async function checkHints(page, checks) {
  const tip = () => page.value('(() => { const tip = document.getElementById("hint"); return tip.hidden ? null : tip.textContent; })()');
  const header = (name) => `[...document.querySelectorAll("#table .hint")].find((e) => e.textContent === "${name}")`;
  for (const [name, words] of [
    ["Head", "Exposed time before the first work of the layer"],
    ["Bubble", "Exposed time between two pieces of work"],
    ["Tail", "Exposed time after the last work"],
  ]) {
    await page.value(`${header(name)}.focus()`);
    await page.until('!document.getElementById("hint").hidden');
    checks.that((await tip()).startsWith(words), `the column ${name} is explained: ${await tip()}`);
    checks.that((await page.value(`${header(name)}.getAttribute("aria-description")`)).startsWith(words), "the explanation reaches screen readers too");
  }
  await page.key("Escape");
  checks.equal(await tip(), null, "Escape closes the explanation");
  const label = '[...document.querySelectorAll("#bars .hint")].find((e) => e.textContent.startsWith("commfuse ("))';
  await page.value(`${label}.scrollIntoView({ block: "center" })`);
  const at = await page.value(`(() => { const b = ${label}.getBoundingClientRect(); return { x: b.x + 20, y: b.y + 8 }; })()`);
  await page.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [at] });
  await page.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  await page.until('!document.getElementById("hint").hidden');
  checks.that(/^commfuse: .*\n(direct|ring): .* shard/.test(await tip()), `a touched schedule explains its options: ${await tip()}`);
  const listed = await page.value('[...document.querySelectorAll("#options dt")].map((e) => e.textContent)');
  checks.that(listed.length > 3 && listed.some((option) => /^k=\d$/.test(option)), `the options on the screen are listed: ${listed}`);
  await page.key("Escape");
}

/// In a narrow window, parts that are cut off are marked, and the fixed sliders are low.
export async function checkPhone(page, checks) {
  checks.that(await page.value('!document.querySelector("#table .more-columns").hidden && document.querySelector("#table .scroll").matches(".more")'), "a table that continues to the right is marked");
  await page.value('(() => { const region = document.querySelector("#table .scroll"); region.scrollLeft = region.scrollWidth; })()');
  await page.until('!document.querySelector("#table .scroll").matches(".more")');
  const high = await page.value('document.querySelector(".quick").getBoundingClientRect().height');
  checks.that(high > 30 && high <= 48, `the sliders at the bottom are low: ${high}`);
  const titles = await page.value("commfusePage.parts.timelines.panels.map((panel) => [panel.title.join(\" \"), panel.timeline.label])");
  checks.that(
    titles.every(([title, label]) => title === label.replace(/[()]/g, "")),
    `titles are complete: ${titles.map(([title]) => title)}`,
  );
}

/// In a narrow window, the timelines that the first minute describes come right below its text.
export async function checkNarrowGuide(page, checks, settled) {
  await page.value('document.getElementById("guide-begin").click()');
  await page.until('commfusePage.live.rows[0].scope === "down"');
  await settled(page);
  const place = (what) => page.value(`document.querySelector("${what}").getBoundingClientRect().top`);
  checks.that((await place("canvas.timeline")) < (await place("#in-model")), "timelines are above the settings");
  checks.that((await place("canvas.timeline")) - (await place(".guide-text")) < 500, `timelines are near the text: ${(await place("canvas.timeline")) - (await place(".guide-text"))}`);
  await page.value('[...document.querySelectorAll(".guide-steps button")].at(-1).click()');
  await settled(page);
  checks.that((await place("canvas.timeline")) > (await place("#in-model")), "timelines are below the settings when the guide has ended");
}

/// On paper there are no buttons, no table is cut off, and few sheets are needed. The window must be reopened
/// afterwards.
export async function checkPaper(page, checks) {
  await page.size(703, 1031, false); // A4 less margins of 12 mm
  await page.send("Emulation.setEmulatedMedia", { media: "print", features: [] });
  const shown = (what) => page.value(`[...document.querySelectorAll("${what}")].filter((e) => e.getClientRects().length > 0).map((e) => e.textContent.slice(0, 40))`);
  checks.equal(await shown("button:not(.hint, .cell),input,select"), [], "no controls on paper");
  const cut = await page.value('[...document.querySelectorAll("table,canvas,.bars,svg.chart")].filter((e) => e.getClientRects().length > 0 && e.getBoundingClientRect().right > 703.5).map((e) => e.textContent.slice(0, 40))');
  checks.equal(cut, [], "nothing is cut off on paper");
  const { data } = await page.send("Page.printToPDF", { preferCSSPageSize: true, printBackground: true });
  const sheets = Buffer.from(data, "base64").toString("latin1").match(/\/Type\s*\/Page\b/g).length;
  checks.that(sheets <= 4, `one layer fits on four sheets: ${sheets}`);
}

export async function checkGuide(page, checks, settled, pictures) {
  const before = await page.value("JSON.stringify(commfusePage.state.settings)");
  await page.value('document.getElementById("guide-begin").click()');
  const texts = [];
  for (let step = 1; step <= 6; ++step) {
    await page.until(`commfusePage.live.rows[0].seq === ${step === 5 ? 256 : 8192} && commfusePage.live.rows[0].scope === "down"`);
    await page.until(`${step === 6} === (commfusePage.live.settings.as === "all")`);
    await settled(page);
    texts.push(await page.value('document.querySelector(".guide-text").textContent'));
    await page.picture(join(pictures, `guide-${step}.png`));
    await page.value('document.getElementById("guide-next").click()');
  }
  checks.that(
    texts.every((words) => words.length > 60 && /\d/.test(words) && !/undefined|NaN|null/.test(words)),
    `six steps, each with numbers: ${texts.join(" | ")}`,
  );
  checks.equal(new Set(texts).size, 6, "every step has a different text");
  checks.that(/^Those were ideal kernels\./.test(texts[5]), "the last step shows kernels that users can get");
  checks.equal(await page.value('document.getElementById("guide-begin").hidden'), false, "the guide ends at its button");
  checks.equal(await page.value("JSON.stringify(commfusePage.state.settings)"), before, "the guide restores the settings");
  await settled(page);
}

const dropped = (
  name,
  content,
) => `(() => { const data = new DataTransfer(); data.items.add(new File([${JSON.stringify(content)}], ${JSON.stringify(name)}));
  dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true })); })()`;

const config = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 4096,
  intermediate_size: 14336,
  num_attention_heads: 32,
  num_hidden_layers: 32,
  num_key_value_heads: 8,
  vocab_size: 128256,
  tie_word_embeddings: false,
};

export async function checkFiles(page, checks, settled, real) {
  await page.value('location.hash = "#seq=4096"');
  await page.until("commfusePage.live.rows[0].seq === 4096 && commfusePage.live.rows[0].scope === 'mlp'");
  await settled(page);
  await page.value(dropped("config.json", JSON.stringify(config)));
  await page.until(`${text("notice")}.startsWith("config.json is the model now")`);
  await settled(page);
  const chosen = await page.value('document.getElementById("in-model").selectedOptions[0].textContent');
  checks.equal(chosen, "config.json", "a dropped model is chosen");
  checks.that(!(await page.value(text("command"))).includes("/files/"), "the command names the user's file, not the engine's copy");
  checks.that(await page.value('document.getElementById("problem").hidden'), "a dropped model is simulated");
  await page.value(dropped("wrong.yaml", "schema: commfuse.hardware/1\nmistake: 1\n"));
  await page.until(`${text("notice")}.startsWith("wrong.yaml:")`);
  const notice = await page.value(text("notice"));
  checks.that(
    real ? /^wrong\.yaml:\d+:\d+: .+; .+/.test(notice) : notice === "wrong.yaml:1:1: unknown key 'mistake'; known keys: schema, name",
    `a file with a mistake is refused with place and remedy: ${notice}`,
  );
  await page.value(dropped("bytes.yaml", "schema: \0\uFFFD"));
  await page.until(`${text("notice")}.startsWith("bytes.yaml")`);
  checks.equal(
    await page.value(text("notice")),
    "bytes.yaml is not text in UTF-8; drop a hardware YAML, a model YAML or a config.json.",
    "a file that is not text is refused",
  );
  await page.value('location.hash = "#seq=4096"');
  await page.until('commfusePage.live.settings.model === "llama-3.1-70b"');
  await settled(page);
}

export async function checkPlan(page, checks, pictures) {
  await page.value('document.getElementById("tab-layer").focus()');
  await page.key("ArrowRight");
  checks.equal(await page.value('document.getElementById("panel-plan").hidden'), false, "arrow keys change the tab");
  await page.value('document.getElementById("plan-run").click()');
  checks.equal(await page.value('document.getElementById("plan-cancel").hidden'), false, "a plan can be cancelled");
  await page.value('document.getElementById("plan-cancel").click()');
  checks.equal(await page.value('document.querySelector("#panel-plan [role=status]").textContent'), "Cancelled.", "the cancellation is reported");
  await page.value('document.getElementById("plan-run").click()');
  await page.until('document.querySelector("#panel-plan .headline")', 120);
  const headline = await page.value('document.querySelector("#panel-plan .headline").textContent');
  checks.that(
    /^[\d,]+ \S+, (\d+%|over 99%) sure to meet the deadline: [\d.]+ days, \$[\d.]+[kMB]\.$/.test(headline),
    `the headline has GPUs, the chance of meeting the deadline, days and money: ${headline}`,
  );
  checks.that(
    (await page.value('document.querySelectorAll("#panel-plan .dot").length')) > 10,
    "every number of GPUs is a point of the chart",
  );
  checks.that(
    await page.value('location.hash.includes("tab=plan&plan.tokens=2T&plan.gpus=h100&plan.price=2.80&plan.deadline=90d")'),
    "the link names the plan",
  );
  const verdict = await page.value('document.querySelector("#panel-plan .verdict").innerText');
  checks.that(
    / (at every GEMM|at \d of the \d GEMMs) that meets? /.test(verdict) && / sequences of 4K tokens /.test(verdict) && /Days and cost include about [\d.]+ failures/.test(verdict),
    `the verdict has kernels, batch and failures: ${verdict}`,
  );
  const ticks = await page.value('[...document.querySelectorAll("#panel-plan .chart text")].map((e) => e.textContent).filter((label) => /^\\$/.test(label))');
  const worth = ticks.map((label) => Number.parseFloat(label.slice(1)) * { k: 1e3, M: 1e6, B: 1e9 }[label.at(-1)]);
  checks.that(
    worth.length > 2 && worth.every((amount, i) => i === 0 || amount > worth[i - 1]),
    `the ticks of cost rise, so none has lost its zeros: ${ticks}`,
  );
  checks.equal(await page.value('document.querySelectorAll("#panel-plan .chart .limit").length'), 1, "the deadline is a line of the chart");
  checks.that((await page.value('document.querySelector("#panel-plan .legend").textContent')).includes("deadline, 90 days"), "the legend of the chart names the deadline");
  checks.that(!/75\.3 days \(|The chance of meeting/.test(verdict), `nothing is stated twice: ${verdict}`);
  const rates = await page.value('[...document.querySelectorAll("#panel-plan tbody th")].map((e) => e.textContent).filter((label) => label.startsWith("links"))');
  checks.equal(rates, ["links \u00d70.5", "links \u00d72", "links \u00d74"], "the table has halved, doubled and quadrupled link rates");
  checks.that(await page.value('getComputedStyle(document.querySelector("footer .of-plans")).display !== "none" && getComputedStyle(document.querySelector("footer .of-layers")).display === "none"'), "the footer is about plans");
  checks.equal(
    await page.value('[...document.querySelectorAll("#panel-plan td")].filter((e) => /^[+\u2212]?0\\.0%$/.test(e.textContent)).length'),
    0,
    "changes without effect are in a sentence, not in rows of zeros",
  );
  const rows = (which) => page.value(`[...document.querySelectorAll("#panel-plan tr.beaten")].filter((e) => ${which}e.hidden).length`);
  checks.that((await rows("")) > 0 && (await rows("!")) === 0, "numbers of GPUs that another number beats in days and cost are hidden");
  await page.value('[...document.querySelectorAll("#panel-plan button")].find((e) => e.textContent.startsWith("Show all")).click()');
  checks.equal(await rows(""), 0, "a button shows the hidden numbers of GPUs");
  await page.picture(join(pictures, "plan.png"));
  await page.value('document.getElementById("tab-layer").click()');
}
