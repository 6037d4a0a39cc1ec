// SPDX-License-Identifier: Apache-2.0
// Operates a timeline as people do: points, zooms and pans, by mouse and by keyboard.

/// Share of a canvas's pixels that differ from its corner pixel.
export const inked = (canvas) => `(() => { const c = ${canvas}; const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
  let n = 0; for (let i = 0; i < d.length; i += 4) n += d[i] !== d[0] || d[i + 1] !== d[1] || d[i + 2] !== d[2]; return n / (d.length / 4); })()`;

export async function middleOf(page, selector) {
  return page.value(`(() => { const e = document.querySelector(${JSON.stringify(selector)}); e.scrollIntoView({ behavior: "instant", block: "center" });
    const b = e.getBoundingClientRect(); return { x: b.x, y: b.y, width: b.width, height: b.height }; })()`);
}

export async function checkTimeline(page, checks) {
  const box = await middleOf(page, "canvas.timeline");
  checks.that((await page.value(inked('document.querySelector("canvas.timeline")'))) > 0.05, "the timeline is drawn");
  const timeline = "commfuseReport.timelines[0]";
  const legend = await page.value('[...document.querySelectorAll("figure[data-timeline] ul.legend")[0].children].map((item) => item.textContent)');
  checks.that(legend.includes("communication") && legend.includes("on the critical path"), `the timeline has a legend: ${legend}`);
  checks.that(await page.value(`${timeline}.block.panels.every((panel) => panel.kind === "measured" || /^[0-9.]+%$/.test(panel.mfu))`), "every predicted schedule states its MFU");
  const bar = await page.value(`(() => { const t = ${timeline}; const row = t.rows.find((r) => !r.head && r.lane.to > r.lane.from); const i = row.lane.from;
    return { x: t.xOf(t.block.data.start[i] + t.block.data.length[i] / 2), y: row.y + 9, label: t.labelOf(i) }; })()`);
  await page.mouse("mouseMoved", box.x + bar.x, box.y + bar.y);
  const tip = await page.value('document.querySelector(".timeline-box .tip").innerText');
  checks.that(tip.includes(bar.label) && /predicted/.test(tip) && /(bytes|FLOPs)/.test(tip), `the tip states op, bytes, FLOPs and whether the op is predicted: ${tip}`);
  const span = () => page.value(`${timeline}.view.to - ${timeline}.view.from`);
  const whole = await span();
  const kept = await page.value('document.querySelector("canvas.timeline").dispatchEvent(new WheelEvent("wheel", { deltaY: -300, cancelable: true }))');
  checks.that(kept && (await span()) === whole, "the wheel scrolls the page while the timeline has no focus");
  const again = await middleOf(page, "canvas.timeline");
  await page.mouse("mousePressed", again.x + 400, again.y + 60, { button: "left", clickCount: 1 });
  await page.mouse("mouseReleased", again.x + 400, again.y + 60, { button: "left", clickCount: 1 });
  await page.mouse("mouseWheel", again.x + 400, again.y + 60, { deltaX: 0, deltaY: -300 });
  await page.until(`${timeline}.view.to - ${timeline}.view.from < ${whole} * 0.9`, 5);
  const zoomed = await page.value(`${timeline}.view.from`);
  await page.mouse("mousePressed", again.x + 500, again.y + 60, { button: "left", clickCount: 1 });
  await page.mouse("mouseMoved", again.x + 300, again.y + 60, { button: "left", buttons: 1 });
  await page.mouse("mouseReleased", again.x + 300, again.y + 60, { button: "left", clickCount: 1 });
  checks.that((await page.value(`${timeline}.view.from`)) > zoomed, "dragging to the left moves on in time");
  await page.key("0");
  await page.until(`${timeline}.view.from === 0`, 5);
  await page.key("ArrowRight");
  await page.key("ArrowRight");
  checks.that((await page.value('document.getElementById("announced").textContent')).includes("rank"), "arrow keys announce the op to screen readers");
  await page.key("Escape");
  checks.that(await page.value(`${timeline}.block.data.flags.some((f) => f & 4)`), "some bars are on the critical path");
  checks.that(await page.value(`${timeline}.lanes.some((l) => l.exposed && l.exposed.length > 0)`), "some exposed time exists and can be hatched");
}
