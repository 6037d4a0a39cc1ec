// SPDX-License-Identifier: Apache-2.0
// Checks implementations beside ideal schedules, on a page without a link and from links that name them.

const text = (id) => `document.getElementById("${id}").textContent`;
const less = (share) => `${(100 * Math.abs(share)).toFixed(1)}% ${share > 0 ? "less" : "more"} time`;
const chosen = 'document.getElementById("in-as").selectedOptions[0].textContent';
const panels = "commfusePage.parts.timelines.panels.map((p) => [p.row.implements, p.row.strategy, p.ideal])";

/// On a page without a link, the first verdict is about kernels that people can get.
export async function checkReal(page, checks) {
  const rows = await page.value("commfusePage.live.rows");
  const serial = rows.find((row) => row.strategy === "serial");
  const real = rows.filter((row) => row.implements);
  const surely = real.filter((row) => row.beats_serial >= 0.8 && serial.makespan_us / row.makespan_us > 1.02);
  const have = surely.reduce((a, b) => (a.makespan_us < b.makespan_us ? a : b));
  const ideals = rows.filter((row) => row.bound);
  const ideal = ideals.reduce((a, b) => (a.makespan_us < b.makespan_us ? a : b));
  checks.that(real.length > 5 && ideals.length > 5, "implementations stand beside ideal schedules");
  checks.that(await page.value('location.hash.endsWith("&as=all")'), "the link says so");
  checks.equal(await page.value(chosen), "all described here", "and the control");
  checks.equal(await page.value(text("said-as")), `${real.length} run here, next to serial and ideal kernels.`, "with how many run");
  const by = less(1 - have.makespan_us / serial.makespan_us);
  const sure = `${Math.round(100 * have.beats_serial)}% sure to beat serial`;
  checks.equal(
    await page.value(text("headline")),
    `Overlap pays with kernels you can get: ${have.strategy} takes ${by} than serial (${sure}), for the MLP.`,
    "the headline is on what one would deploy",
  );
  const second = await page.value(text("second"));
  const reach = `Ideal kernels (${ideal.strategy}) would take ${less(1 - ideal.makespan_us / have.makespan_us)} than ${have.strategy}.`;
  checks.that(
    second.startsWith(`${reach} ${have.strategy} loses time to its `) && !/ us\b/.test(second),
    `the second on the bound, and on what holds it back: ${second}`,
  );
  checks.that((await page.value(text("size"))).includes(`${have.strategy} takes `), "the time is that of the implementation");
  const strangers = real.filter((row) => (row.warnings ?? "").includes("nobody measured")).map((row) => row.strategy);
  checks.equal(
    await page.value(text("beyond")),
    `Beyond the fit: nobody measured ${strangers.join(" or ")} on GPUs such as H100 SXM; the others were measured on such GPUs.`,
    "what nobody measured is said once",
  );
  checks.equal(await page.value('document.getElementById("warnings").hidden'), true, "and not as a warning");
}

/// The recommended implementation is not the fastest one if only a slower one surely beats serial.
export async function checkDeployed(page, checks) {
  const row = (strategy, makespan_us, beats_serial) => ({ strategy, makespan_us, beats_serial, implements: "fused_kernel" });
  const rows = (...real) => JSON.stringify([{ strategy: "serial", makespan_us: 1000 }, ...real]);
  const of = (what, expected) => page.value(`(${what})`).then((said) => checks.equal(said, expected, what));
  const passed = rows(row("quick", 800, 0.69), row("sure", 900, 0.86));
  await of(`headlineOf(${passed})`, "Overlap pays with kernels you can get: sure takes 10.0% less time than serial (86% sure to beat serial).");
  await of(`recommendationSecond(recommendationOf(${passed}), ${passed})`, "quick may take 11.1% less time than sure, but is only 69% sure to beat serial.");
  await of(`cellOf(${passed}).words`, "sure takes 10.0% less time than serial, 86% sure to beat serial");
  const unsure = rows(row("quick", 800, 0.69), row("other", 990, 0.9));
  await of(`headlineOf(${unsure})`, "Too close to call: quick, the fastest implementation, takes 20.0% less time than serial (only 69% sure to beat serial).");
  const ideal = JSON.stringify([{ strategy: "serial", makespan_us: 1000, verdict: "wins", win_probability: 0.9 }, { strategy: "sliced", makespan_us: 1100, verdict: "loses" }]);
  await of(`headlineOf(${ideal})`, "Even with ideal kernels overlap does not pay: serial wins (90% sure that it is the fastest).");
  await of('headlineOf([{ strategy: "all_reduce", time_ms: 13.935 }])', `Only all_reduce runs here, in 13.935\u202fms.`);
}

/// Every part distinguishes rows of the same name.
export async function checkRealParts(page, checks, settled) {
  const drawn = await page.value(panels);
  checks.that(
    drawn[0][1] === "serial" && drawn.filter(([real]) => real).length > 5 && drawn.filter(([, , ideal]) => ideal).length === 1,
    `the axis shows serial, implementations and the nearest bound: ${drawn}`,
  );
  const chips = await page.value('[...document.querySelectorAll("#chips > *")].map((e) => e.dataset.name ?? e.textContent)');
  checks.that(chips.indexOf("as:async_tp") < chips.indexOf("Ideal kernels") && chips.includes("async_tp"), `both async_tp have a button: ${chips}`);
  await page.value('document.querySelector("#chips [data-name=async_tp]").click()');
  checks.that((await page.value(panels)).some(([real, name]) => !real && name === "async_tp"), "a bound joins the axis");
  checks.that(await page.value('location.hash.includes("show=serial,as:async_tp,")'), "which the link says");
  await page.value('document.querySelector("#chips [data-name=async_tp]").click()');
  checks.that(await page.value('!location.hash.includes("show=")'), "and no longer once it is as usual");
  const p99 = await page.value('["async_tp", "as:async_tp"].map((one) => commfusePage.live.p99.get(one))');
  checks.that(p99[0] > 0 && p99[1] > 0 && p99[0] !== p99[1], `each has its own p99: ${p99}`);
  checks.equal(
    await page.value('[...document.querySelectorAll("#table tr.group")].map((e) => e.textContent)'),
    ["Kernels you can get", "Ideal kernels"],
    "the table has two parts",
  );
  const fastest = await page.value('document.querySelector("#table tr.fastest").textContent');
  const best = await page.value("recommendationOf(commfusePage.live.rows).have.strategy");
  checks.that(fastest.startsWith(best), `the fastest of the first is marked: ${fastest}`);
  const columns = await page.value('[...document.querySelectorAll("#table thead th")].map((e) => e.firstChild.textContent)');
  checks.that(columns.includes("Beats serial") && !columns.includes("Fastest"), `with the probability that each beats serial: ${columns}`);
  checks.equal(columns.indexOf("Exposed"), columns.indexOf("MFU") + 1, "exposed time is on the screen");
  const marks = await page.value('commfusePage.parts.timelines.panels.map((p) => [p.row.strategy, p.words, p.best]).filter(([, words]) => words)');
  checks.that(marks.every(([name, words, bold]) => bold === (name === best) && /^(pays, )?(\d+|> 99|< 1)% likely to beat serial$/.test(words)), `so does the axis: ${marks}`);
  const cell = await page.value('document.querySelector(".cell[aria-current]").getAttribute("aria-label")');
  checks.that(cell.startsWith(`4K tokens, 8 ranks: ${best} takes `) && / than serial, \d+% sure to beat serial$/.test(cell), `the map names implementations: ${cell}`);
  checks.that((await page.value('document.querySelector("#why .lead").textContent')).startsWith(`${best} takes `), "the comparison begins with it");
  await page.value(
    '(() => { for (const [id, value] of [["why-first", "as:async_tp"], ["why-second", "async_tp"]]) { const s = document.getElementById(id); s.value = value; s.dispatchEvent(new Event("change")); } })()',
  );
  await page.until('document.querySelector("#why .lead").textContent.includes("than async_tp (ideal)")');
  checks.that(
    /^async_tp takes [\d.]+\u202f\u00b5s more than async_tp \(ideal\)/.test(await page.value('document.querySelector("#why .lead").textContent')),
    "an implementation is compared with its own schedule",
  );
  checks.that(await page.value('location.hash.includes("compare=as:async_tp,async_tp")'), "as the link says");
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
  checks.equal(await page.value(chosen), "ideal schedules only", "a link without implementations has none");
  checks.that((await page.value(text("headline"))).startsWith("With ideal kernels overlap pays: "), "and the verdict of ideal schedules");
  await go("#seq=4096&as=flux,te", "commfusePage.live.rows.filter((row) => row.implements).length === 2");
  checks.equal(await page.value(chosen), "flux,te", "a set of a link is shown");
  checks.that(/^Too close to call: te, the fastest implementation, takes .* \(only \d+% sure to beat serial\), /.test(await page.value(text("headline"))), "which may be too close to call");
  await go("#scope=down&as=flux&seq=4096", "commfusePage.live.rows.some((row) => row.strategy === 'flux')");
  checks.that(/^Overlap does not pay with kernels you can get: flux takes [\d.]+% more time than serial \(\d+% sure that serial is faster\), /.test(await page.value(text("headline"))), "one that loses");
  checks.equal(await page.value("payOf(commfusePage.live.rows)"), "loses", "for the map too");
  await go("#scope=down&as=vllm_gemm_rs", '!document.getElementById("problem").hidden');
  checks.equal(
    await page.value('[...document.querySelectorAll("#problem button")].map((e) => e.textContent)'),
    ["Implementations: ideal schedules only", "Implementations: all described here"],
    "one that does not run there is refused, with a way out",
  );
  await go("#scope=attention&as=all", "commfusePage.live.rows[0].scope === 'attention'");
  checks.that((await page.value(text("second"))).startsWith("No implementation described here runs this, so these are ideal kernels. "), "where none runs, that is said");
  await go("#scope=prefill&as=all&seq=4096", "commfusePage.live.whole");
  checks.equal(await page.value('document.getElementById("in-as").disabled'), true, "whole models have none");
  checks.equal(await page.value(text("said-as")), "Whole models have no implementations: choose a part of a layer under What runs.", "as the control says");
  checks.that((await page.value(text("second"))).startsWith("Whole models are simulated with ideal kernels. "), "and the verdict");
  checks.that(!(await page.value(text("command"))).includes("--as all"), "the engine is not asked for them");
  await go("", "commfusePage.live.rows.some((row) => row.implements)");
  checks.equal(await page.value("commfusePage.state.settings"), { as: "all" }, "without a link all are back");
}

/// A narrow window hides bounds.
export async function checkFolded(page, checks) {
  const bars = 'document.querySelectorAll("#bars .bar.ideal").length';
  const button = 'document.querySelector("#bars .group button")';
  checks.equal(await page.value(bars), 0, "bounds are folded away");
  checks.that(/^Show \d+ ideal schedules$/.test(await page.value(`${button}.textContent`)), "which a button says");
  await page.value(`${button}.click()`);
  checks.that((await page.value(bars)) > 5 && !(await page.value('document.querySelector("#table tbody:last-child").hidden')), "and shows them, in bars and table");
}
