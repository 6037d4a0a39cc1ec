// SPDX-License-Identifier: Apache-2.0
// Checks implementations and ideal schedules, on a page without a link and from links that name implementations.

const text = (id) => `document.getElementById("${id}").textContent`;
const less = (share) => `${(100 * Math.abs(share)).toFixed(1)}% ${share > 0 ? "less" : "more"} time`;
const listed = (names) => names.join(", ").replace(/, ([^,]*)$/, " and $1");
const chosen = 'document.getElementById("in-as").selectedOptions[0].textContent';
const panels = "commfusePage.parts.timelines.panels.map((p) => [p.row.implements, p.row.strategy, p.ideal])";

/// On a page without a link, the first verdict is about kernels that people can get.
export async function checkReal(page, checks) {
  const rows = await page.value("commfusePage.live.rows");
  const serial = rows.find((row) => row.strategy === "serial");
  const real = rows.filter((row) => row.implements);
  const winners = real.filter((row) => row.beats_serial >= 0.8 && serial.makespan_us / row.makespan_us > 1.02);
  const recommended = winners.reduce((a, b) => (a.makespan_us < b.makespan_us ? a : b));
  const ideals = rows.filter((row) => row.bound);
  const ideal = ideals.reduce((a, b) => (a.makespan_us < b.makespan_us ? a : b));
  checks.that(real.length > 5 && ideals.length > 5, "the point has implementations and ideal schedules");
  checks.that(await page.value('location.hash.endsWith("&as=all")'), "the link names all implementations");
  checks.equal(await page.value(chosen), "all described here", "the control shows all implementations");
  checks.equal(await page.value(text("said-as")), `${real.length} run here, next to serial and ideal kernels.`, "the control states how many implementations run");
  const by = less(1 - recommended.makespan_us / serial.makespan_us);
  const sure = `${Math.round(100 * recommended.beats_serial)}% sure to beat serial`;
  checks.equal(
    await page.value(text("headline")),
    `Overlap pays with kernels you can get: ${recommended.strategy} takes ${by} than serial (${sure}), for the MLP.`,
    "the headline is about the recommended implementation",
  );
  const second = await page.value(text("second"));
  const reach = `Ideal kernels (${ideal.strategy}) would take ${less(1 - ideal.makespan_us / recommended.makespan_us)} than ${recommended.strategy}.`;
  checks.that(
    second.startsWith(`${reach} ${recommended.strategy} loses time to its `) && !/ us\b/.test(second),
    `the second sentence states the bound and what limits the implementation: ${second}`,
  );
  checks.that((await page.value(text("size"))).includes(`${recommended.strategy} takes `), "the stated time is the time of the implementation");
  const unmeasured = real.filter((row) => row.unmeasured_on).map((row) => row.strategy);
  checks.equal(
    await page.value(text("beyond")),
    `Beyond the fit: ${listed(unmeasured)} ${unmeasured.length > 1 ? "were" : "was"} not measured on GPUs such as H100 SXM; the others were measured on such GPUs.`,
    "unmeasured implementations are named in one sentence",
  );
  checks.equal(await page.value('document.getElementById("warnings").hidden'), true, "unmeasured implementations cause no warning");
}

/// The recommended implementation is not the fastest one if only a slower one clearly beats serial.
export async function checkDeployed(page, checks) {
  const row = (strategy, makespan_us, beats_serial) => ({ strategy, makespan_us, beats_serial, implements: "fused_kernel" });
  const rows = (...real) => JSON.stringify([{ strategy: "serial", makespan_us: 1000 }, ...real]);
  const expectValue = (expression, expected) => page.value(`(${expression})`).then((value) => checks.equal(value, expected, expression));
  const fastestIsUnsure = rows(row("quick", 800, 0.69), row("sure", 900, 0.86));
  await expectValue(`headlineOf(${fastestIsUnsure})`, "Overlap pays with kernels you can get: sure takes 10.0% less time than serial (86% sure to beat serial).");
  await expectValue(`recommendationSecond(recommendationOf(${fastestIsUnsure}), ${fastestIsUnsure})`, "quick may take 11.1% less time than sure, but is only 69% sure to beat serial.");
  await expectValue(`cellOf(${fastestIsUnsure}).words`, "sure takes 10.0% less time than serial, 86% sure to beat serial");
  const unsure = rows(row("quick", 800, 0.69), row("other", 990, 0.9));
  await expectValue(`headlineOf(${unsure})`, "Too close to call: quick, the fastest implementation, takes 20.0% less time than serial (only 69% sure to beat serial).");
  await expectValue(`headlineOf(${rows(row("quick", 985, 0.95))})`, "Too close to call: quick takes 1.5% less time than serial, and 2% or less is a tie.");
  const inSwitch = rows({ ...row("torch_multimem", 800, 0.97), implements: "serial" }, row("tokenweave", 1350, 0.02));
  await expectValue(`headlineOf(${inSwitch})`, "Overlap does not pay with kernels you can get: tokenweave, the fastest implementation that overlaps, takes 35.0% more time than serial (98% sure that serial is faster).");
  await expectValue(`recommendationSecond(recommendationOf(${inSwitch}), ${inSwitch})`, "torch_multimem, which overlaps nothing, takes 20.0% less time than serial (97% sure to beat serial).");
  await expectValue(`cellOf(${inSwitch}).words`, "torch_multimem wins; tokenweave takes 35.0% more time than serial, 98% sure that serial is faster");
  await expectValue(`headlineOf(${rows({ ...row("torch_multimem", 800, 0.97), implements: "serial" })})`, "torch_multimem is the fastest, in 800.0\u202f\u00b5s.");
  const ideal = JSON.stringify([{ strategy: "serial", makespan_us: 1000, verdict: "wins", win_probability: 0.9 }, { strategy: "sliced", makespan_us: 1100, verdict: "loses" }]);
  await expectValue(`headlineOf(${ideal})`, "Even with ideal kernels overlap does not pay: serial wins (90% sure that it is the fastest).");
  await expectValue('headlineOf([{ strategy: "all_reduce", time_ms: 13.935 }])', `Only all_reduce runs here, in 13.935\u202fms.`);
}

/// Every part distinguishes rows of the same name.
export async function checkRealParts(page, checks, settled) {
  const drawn = await page.value(panels);
  checks.that(
    drawn[0][1] === "serial" && drawn.filter(([real]) => real).length > 5 && drawn.filter(([, , ideal]) => ideal).length === 1,
    `the axis shows serial, implementations and the nearest bound: ${drawn}`,
  );
  const chips = await page.value('[...document.querySelectorAll("#chips > *")].map((e) => e.dataset.name ?? e.textContent)');
  checks.that(chips.indexOf("as:async_tp") < chips.indexOf("Ideal kernels") && chips.includes("async_tp"), `the implementation and the ideal schedule async_tp each have a button: ${chips}`);
  await page.value('document.querySelector("#chips [data-name=async_tp]").click()');
  checks.that((await page.value(panels)).some(([real, name]) => !real && name === "async_tp"), "a click adds a bound to the axis");
  checks.that(await page.value('location.hash.includes("show=serial,as:async_tp,")'), "the link names the added bound");
  await page.value('document.querySelector("#chips [data-name=async_tp]").click()');
  checks.that(await page.value('!location.hash.includes("show=")'), "the link does not name the default selection");
  const p99 = await page.value('["async_tp", "as:async_tp"].map((id) => commfusePage.live.p99.get(id))');
  checks.that(p99[0] > 0 && p99[1] > 0 && p99[0] !== p99[1], `each has its own p99: ${p99}`);
  checks.equal(
    await page.value('[...document.querySelectorAll("#table tr.group")].map((e) => e.textContent)'),
    ["Kernels you can get", "Ideal kernels"],
    "the table has two parts",
  );
  const fastest = await page.value('document.querySelector("#table tr.fastest").textContent');
  const best = await page.value("recommendationOf(commfusePage.live.rows).have.strategy");
  checks.that(fastest.startsWith(best), `the recommended implementation is marked as fastest: ${fastest}`);
  const columns = await page.value('[...document.querySelectorAll("#table thead th")].map((e) => e.firstChild.textContent)');
  checks.that(columns.includes("Beats serial") && !columns.includes("Fastest"), `a column has the probability that each beats serial: ${columns}`);
  checks.equal(columns.indexOf("Exposed"), columns.indexOf("MFU") + 1, "the column of exposed time follows MFU");
  const marks = await page.value('commfusePage.parts.timelines.panels.map((p) => [p.row.strategy, p.words, p.best]).filter(([, words]) => words)');
  checks.that(marks.every(([name, words, bold]) => bold === (name === best) && /^(pays, )?(\d+|> 99|< 1)% likely to beat serial$/.test(words)), `the axis has this probability too: ${marks}`);
  const cell = await page.value('document.querySelector(".cell[aria-current]").getAttribute("aria-label")');
  checks.that(cell.startsWith(`4K tokens, 8 ranks: ${best} takes `) && / than serial, \d+% sure to beat serial$/.test(cell), `the map names implementations: ${cell}`);
  checks.that((await page.value('document.querySelector("#why .lead").textContent')).startsWith(`${best} takes `), "the comparison begins with the recommended implementation");
  await page.value(
    '(() => { for (const [id, value] of [["why-first", "as:async_tp"], ["why-second", "async_tp"]]) { const s = document.getElementById(id); s.value = value; s.dispatchEvent(new Event("change")); } })()',
  );
  await page.until('document.querySelector("#why .lead").textContent.includes("than async_tp (ideal)")');
  checks.that(
    /^async_tp takes [\d.]+\u202f\u00b5s more than async_tp \(ideal\)/.test(await page.value('document.querySelector("#why .lead").textContent')),
    "an implementation is compared with its own schedule",
  );
  checks.that(await page.value('location.hash.includes("compare=as:async_tp,async_tp")'), "the link names the compared schedules");
  await settled(page);
}

/// Older links keep their meaning: without `as` there are no implementations.
export async function checkFromLink(page, checks, settled) {
  const go = async (hash, until) => {
    await page.value(`location.hash = "${hash}"`);
    await page.until(until);
    await settled(page);
  };
  await go("#seq=4096", "!commfusePage.live.rows.some((row) => row.implements)");
  checks.equal(await page.value(chosen), "ideal schedules only", "a link without implementations shows none");
  checks.that((await page.value(text("headline"))).startsWith("With ideal kernels overlap pays: "), "a link without implementations has the verdict of ideal schedules");
  await go("#seq=4096&as=flux,te", "commfusePage.live.rows.filter((row) => row.implements).length === 2");
  checks.equal(await page.value(chosen), "flux,te", "the control shows the implementations of the link");
  checks.that(/^Too close to call: te, the fastest implementation, takes .* \(only \d+% sure to beat serial\), /.test(await page.value(text("headline"))), "the verdict may be too close to call");
  await go("#scope=down&as=flux&seq=4096", "commfusePage.live.rows.some((row) => row.strategy === 'flux')");
  checks.that(/^Overlap does not pay with kernels you can get: flux takes [\d.]+% more time than serial \(\d+% sure that serial is faster\), /.test(await page.value(text("headline"))), "an implementation may lose");
  checks.equal(await page.value("payOf(commfusePage.live.rows)"), "loses", "the map shows the loss too");
  await go("#scope=down&as=vllm_gemm_rs", '!document.getElementById("problem").hidden');
  checks.equal(
    await page.value('[...document.querySelectorAll("#problem button")].map((e) => e.textContent)'),
    ["Implementations: ideal schedules only", "Implementations: all described here"],
    "an implementation that does not run is refused, with buttons that help",
  );
  await go("#scope=attention&as=all", "commfusePage.live.rows[0].scope === 'attention'");
  checks.that((await page.value(text("second"))).startsWith("No implementation described here runs this, so these are ideal kernels. "), "the page states that no implementation runs");
  await go("#scope=prefill&as=all&seq=4096", "commfusePage.live.whole");
  checks.equal(await page.value('document.getElementById("in-as").disabled'), true, "the control is disabled for whole models");
  checks.equal(await page.value(text("said-as")), "This page compares implementations in parts of a layer only: choose a part under \u201cWhat runs\u201d.", "the control states that implementations are compared in parts of a layer");
  checks.that((await page.value(text("second"))).startsWith("Whole models are simulated with ideal kernels. "), "the verdict states that whole models have ideal kernels");
  checks.that(!(await page.value(text("command"))).includes("--as all"), "the command requests no implementations");
  await go("", "commfusePage.live.rows.some((row) => row.implements)");
  checks.equal(await page.value("commfusePage.state.settings"), { as: "all" }, "without a link, all implementations are shown again");
}

/// A narrow window hides bounds.
export async function checkFolded(page, checks) {
  const bars = 'document.querySelectorAll("#bars .bar.ideal").length';
  const button = 'document.querySelector("#bars .group button")';
  checks.equal(await page.value(bars), 0, "bounds are hidden");
  checks.that(/^Show \d+ ideal schedules$/.test(await page.value(`${button}.textContent`)), "a button offers to show the bounds");
  await page.value(`${button}.click()`);
  checks.that((await page.value(bars)) > 5 && !(await page.value('document.querySelector("#table tbody:last-child").hidden')), "a click shows the bounds, in bars and table");
}
