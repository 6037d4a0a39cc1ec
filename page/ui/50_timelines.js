// SPDX-License-Identifier: Apache-2.0
// All schedules on one time axis, on a canvas: lanes of ops, hatched where time is exposed, and below each schedule the
// uncertainty of its end. Ops within one pixel are drawn as one, and the op under the pointer is found by bisection, so
// a lane may have thousands of ops.

const ROW = 18; // pixels of a lane
const STRIP = 12; // pixels of the line with the uncertain end
const AXIS = 30;
const PALE = 0.4; // opacity of ideal schedules next to implementations
const GROUP = 30; // pixels above a group of schedules
const KIND_WORDS = {
  essential: "compute of the layer itself",
  local: "the schedule's own add or copy",
  communication: "communication",
};
const FONT = (size, weight = 400) => `${weight} ${size}px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif`;

/// Returns the spans of time in which at least one of the ops runs, in order and disjoint.
function unionOf(ops) {
  const spans = [];
  for (const [, from, to] of [...ops].sort((a, b) => a[1] - b[1])) {
    if (spans.length > 0 && from <= spans.at(-1)[1]) {
      spans.at(-1)[1] = Math.max(spans.at(-1)[1], to);
    } else {
      spans.push([from, to]);
    }
  }
  return spans;
}

/// Returns the spans in which neither essential nor local work runs: [from, to, "head" | "bubble" | "tail"].
function exposedOf(timeline) {
  const kindOf = (op) => timeline.kinds[op[3]];
  const essential = timeline.ops.filter((op) => kindOf(op) === "essential");
  const busy = unionOf(timeline.ops.filter((op) => kindOf(op) === "essential" || kindOf(op) === "local"));
  const first = Math.min(...essential.map((op) => op[1]), timeline.makespan_ps);
  const last = Math.max(...essential.map((op) => op[2]), 0);
  const spans = [];
  let at = 0;
  for (const [from, to] of [...busy, [timeline.makespan_ps, timeline.makespan_ps]]) {
    if (from > at) {
      spans.push([at, from, from <= first ? "head" : at >= last ? "tail" : "bubble"]);
    }
    at = Math.max(at, to);
  }
  return spans;
}

/// Returns head, bubble and tail without local work, in microseconds.
function exposedParts(timeline) {
  const parts = { head: 0, bubble: 0, tail: 0 };
  for (const [from, to, part] of exposedOf(timeline)) {
    parts[part] += (to - from) / 1e6;
  }
  return parts;
}

class Timelines {
  constructor(place) {
    this.canvas = element("canvas", {
      class: "timeline",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "timeline",
      "aria-label": "Timelines of all schedules. Left and right move between ops, up and down between lanes, Escape closes the description.",
    });
    this.tip = element("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    place.replaceChildren(this.canvas, this.tip);
    place.after(
      legendOf([
        ["essential", "compute; numbers name the parts of the tensor"],
        ["local", "local: adds, copies"],
        ["communication", "communication"],
        ["exposed hatched", "exposed: nothing computes"],
        ["critical", "on the critical path"],
        ["error hatched", "end, \u00b1 one standard error"],
        ["p99", "p99 under jitter"],
        ["", "time in bold: the schedule of the verdict"],
      ]),
    );
    this.panels = [];
    this.picked = null;
    this.colours = palette();
    darkness.addEventListener("change", () => {
      this.colours = palette();
      this.later();
    });
    this.wide = 0; // Set only below, because reading clientWidth while drawing would lay out the page twice per frame.
    new ResizeObserver(() => {
      if (this.wide !== this.canvas.clientWidth) {
        this.wide = this.canvas.clientWidth;
        this.layOut();
        this.draw();
      }
    }).observe(place);
    this.canvas.addEventListener("pointermove", (event) => this.point(this.at(event.offsetX, event.offsetY), event.offsetX, event.offsetY));
    this.canvas.addEventListener("pointerdown", (event) => this.point(this.at(event.offsetX, event.offsetY), event.offsetX, event.offsetY));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("blur", () => this.point(null));
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  /// timelines: from the answer; rows: from its JSON; shown: ids of rows, or null for all.
  show(timelines, rows, shown) {
    const best = bestOf(rows);
    const serial = rows.find((row) => row.strategy === "serial");
    const order = shownOrder(rows);
    const kept = timelines
      .filter(({ row }) => !shown || shown.includes(idOf(rows[row])))
      .sort((a, b) => order.indexOf(a.row) - order.indexOf(b.row));
    this.panels = kept.map((timeline) => this.panelOf(timeline, rows[timeline.row], rows, serial));
    if (withImplementations(rows)) {
      const groups = kept.map(({ row }) => groupOf(rows[row], rows));
      this.panels.forEach((panel, i) => (panel.group = groups[i] === groups[i - 1] ? "" : groups[i]));
    }
    const latest = (row) => row.makespan_us * 1e6 * (1 + (row.makespan_error ?? 0));
    const longest = Math.max(...this.panels.map((panel) => latest(panel.row)), 1);
    const usual = Math.max(...[best, serial].filter(Boolean).map(latest), 0);
    // A schedule that takes far longer than serial would compress all others, so it runs off the edge and shows its
    // length.
    this.end = Math.min(longest, Math.max(usual * 1.9, 1)) * 1.03;
    this.unit = timeUnit(this.end / 1e6);
    this.point(null);
    this.layOut();
    this.draw();
  }

  panelOf(timeline, row, rows, serial) {
    const lanes = timeline.lanes.map((name, lane) => ({
      name,
      ops: timeline.ops.filter((op) => op[0] === lane && op[2] > op[1]).sort((a, b) => a[1] - b[1]),
    }));
    const exposed = exposedOf(timeline);
    const compute = lanes.findIndex((lane) => lane.ops.some((op) => timeline.kinds[op[3]] === "essential"));
    const kept = lanes.filter((lane) => lane.ops.length > 0);
    const host = kept.indexOf(lanes[Math.max(compute, 0)]);
    kept.forEach((lane, i) => (lane.exposed = i === Math.max(host, 0) ? exposed : []));
    const against = serial && row !== serial ? `  ${signedPercent(row.makespan_us / serial.makespan_us - 1)} vs serial` : "";
    const words = marksOf(row, rows);
    const p99 = live.p99.get(idOf(row)) ?? null;
    return { timeline, row, lanes: kept, against, words, best: row === bestOf(rows), ideal: isIdeal(row, rows), group: "", p99 };
  }

  /// Shows why the op under the pointer takes so long, once that is known.
  async explain(picked) {
    if (picked.op === undefined || picked.panel.why) {
      return;
    }
    await rest(80); // A pointer that only passes over an op causes no request.
    if (this.picked !== picked) {
      return;
    }
    try {
      picked.panel.why = await live.why(idOf(picked.panel.row));
    } catch {
      return; // The op is described without the reason.
    }
    if (this.picked === picked) {
      this.showTip(picked);
      document.activeElement === this.canvas && announce(this.tell(picked).join(". "));
    }
  }

  setP99(byId) {
    this.panels.forEach((panel) => (panel.p99 = byId.get(idOf(panel.row)) ?? null));
    this.later();
  }

  layOut() {
    this.narrow = this.wide < 620;
    this.left = this.narrow ? 62 : 76;
    let y = 2;
    for (const panel of this.panels) {
      panel.groupY = y;
      y += panel.group ? GROUP : 0;
      panel.y = y;
      panel.title = this.titleOf(panel);
      panel.head = this.narrow ? 22 + 17 * panel.title.length : 24;
      panel.lanes.forEach((lane, i) => (lane.y = y + panel.head + i * ROW));
      panel.stripY = y + panel.head + panel.lanes.length * ROW;
      y = panel.stripY + STRIP + 8;
    }
    this.height = y + AXIS;
    this.canvas.style.height = `${this.height}px`;
  }

  /// Returns the lines of a panel's title. On a phone, the options follow the name, on as many lines as needed.
  titleOf({ timeline }) {
    const [name, options] = /^(.*?)(?: \((.*)\))?$/.exec(timeline.label).slice(1);
    if (!this.narrow || !options) {
      return [this.narrow ? name : timeline.label];
    }
    const pen = (this.pen ??= this.canvas.getContext("2d", { alpha: false }));
    pen.font = FONT(13);
    const lines = [name];
    for (const option of options.split(", ")) {
      const longer = `${lines.at(-1)}, ${option}`;
      const fits = lines.length > 1 && pen.measureText(longer).width < this.wide - 12;
      fits ? (lines[lines.length - 1] = longer) : lines.push(option);
    }
    return lines;
  }

  get width() {
    return Math.max(this.wide - this.left - 8, 10);
  }
  xOf(ps) {
    return this.left + (ps / this.end) * this.width;
  }

  later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    if (!this.unit || this.wide === 0) {
      return;
    }
    const { canvas } = this;
    const scale = globalThis.devicePixelRatio || 1;
    const [wide, high] = [Math.round(this.wide * scale), Math.round(this.height * scale)];
    if (canvas.width !== wide || canvas.height !== high) {
      [canvas.width, canvas.height] = [wide, high];
    }
    const pen = (this.pen ??= canvas.getContext("2d", { alpha: false }));
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.fillStyle = this.colours.ground;
    pen.fillRect(0, 0, this.wide, this.height);
    this.drawAxis(pen);
    for (const panel of this.panels) {
      this.drawGroup(pen, panel);
      this.drawHead(pen, panel);
      panel.lanes.forEach((lane) => this.drawLane(pen, panel, lane));
      this.drawEnd(pen, panel);
    }
    ++page.frames;
  }

  drawAxis(pen) {
    const span = (this.end / 1e6) * this.unit.scale;
    const wanted = span / Math.max(this.width / 90, 2);
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= wanted);
    const bottom = this.height - AXIS;
    pen.lineWidth = 1;
    pen.font = FONT(13);
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (let i = 0; i * step <= span; ++i) {
      const x = Math.round(this.left + ((i * step) / span) * this.width) + 0.5;
      pen.strokeStyle = this.colours.grid;
      for (const panel of this.panels) {
        // The line does not cross the words above the lanes.
        pen.beginPath();
        pen.moveTo(x, panel.y + panel.head);
        pen.lineTo(x, panel.stripY + STRIP);
        pen.stroke();
      }
      pen.fillStyle = this.colours.quiet;
      const text = `${Number((i * step).toPrecision(12))}`;
      const half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.min(x, this.wide - half - 1), bottom + 6);
    }
    pen.strokeStyle = this.colours.axis;
    pen.beginPath();
    pen.moveTo(this.left, bottom + 0.5);
    pen.lineTo(this.left + this.width, bottom + 0.5);
    pen.stroke();
    pen.textAlign = "left";
    pen.fillStyle = this.colours.quiet;
    pen.fillText(this.unit.name, 4, bottom + 6);
  }

  drawGroup(pen, { group, groupY }) {
    if (group) {
      pen.fillStyle = this.colours.quiet;
      pen.font = FONT(13, 600);
      pen.textAlign = "left";
      pen.textBaseline = "alphabetic";
      pen.fillText(group, 4, groupY + GROUP - 10);
      pen.strokeStyle = this.colours.grid;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(4, groupY + GROUP - 3.5);
      pen.lineTo(this.left + this.width, groupY + GROUP - 3.5);
      pen.stroke();
    }
  }

  /// Draws the name on the left and numbers on the right, or one below the other on a phone. Shortens long names, but
  /// not numbers.
  drawHead(pen, { y, head, title, row, against, words, ideal, best }) {
    const right = this.left + this.width;
    const numbers = `${this.unit.text(row.makespan_us)} \u00b1${percent(row.makespan_error ?? 0)}${against}`;
    pen.textBaseline = "alphabetic";
    pen.textAlign = this.narrow ? "left" : "right";
    pen.font = FONT(14, best ? 600 : 400);
    pen.fillStyle = ideal ? this.colours.quiet : this.colours.ink;
    const baseline = y + head - 7;
    pen.fillText(numbers, this.narrow ? 4 : right, baseline);
    const space = right - 4 - (this.narrow ? 0 : pen.measureText(numbers).width + 20);
    pen.textAlign = "left";
    pen.font = FONT(14, ideal ? 400 : 600);
    const mark = words ? `  ${words}` : "";
    let [text] = title;
    while (text.length > 8 && pen.measureText(text + mark).width > space) {
      text = text.endsWith("\u2026") ? `${text.slice(0, -2)}\u2026` : `${text.slice(0, -1)}\u2026`;
    }
    const nameY = this.narrow ? y + 14 : baseline;
    pen.fillText(text, 4, nameY);
    if (words) {
      const at = 4 + pen.measureText(`${text}  `).width;
      pen.fillStyle = this.colours.link;
      pen.fillText(words, at, nameY);
    }
    pen.fillStyle = this.colours.quiet;
    pen.font = FONT(13);
    title.slice(1).forEach((line, i) => pen.fillText(line, 4, nameY + 17 * (i + 1)));
  }

  drawLane(pen, panel, lane) {
    pen.fillStyle = this.colours.quiet;
    pen.font = FONT(12);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillText(lane.name, this.left - 8, lane.y + ROW / 2);
    pen.save();
    pen.beginPath();
    pen.rect(this.left, lane.y, this.width, ROW);
    pen.clip();
    const psPerPixel = this.end / this.width;
    for (let i = 0; i < lane.ops.length;) {
      const [, from, to, kind, label, critical] = lane.ops[i];
      if (from > this.end) {
        break;
      }
      const x = this.xOf(from);
      const wide = Math.max(this.xOf(to) - x - (to - from > 4 * psPerPixel ? 1 : 0), 0.8);
      const name = panel.timeline.kinds[kind];
      pen.fillStyle = this.colours[name] ?? this.colours.muted;
      pen.globalAlpha = panel.ideal ? PALE : 1;
      pen.fillRect(x, lane.y + 1, wide, ROW - 3);
      pen.globalAlpha = 1;
      if (critical) {
        pen.fillStyle = this.colours.ink;
        pen.fillRect(x, lane.y + ROW - 5, wide, 3);
      }
      if (this.picked && this.picked.lane === lane && this.picked.op === i) {
        pen.strokeStyle = this.colours.ink;
        pen.lineWidth = 2;
        pen.strokeRect(x + 1, lane.y + 2, Math.max(wide - 2, 1), ROW - 5);
      }
      if (wide > 30) {
        const colour = (!panel.ideal && this.colours[`on-${name}`]) || this.colours.ink;
        this.write(pen, panel.timeline.labels[label], colour, x, wide, lane.y + ROW / 2 - 1);
      }
      ++i;
      while (wide < 1 && i < lane.ops.length && lane.ops[i][2] - from < psPerPixel) {
        ++i; // Ops within one pixel are drawn as one.
      }
    }
    this.drawExposed(pen, lane);
    pen.restore();
  }

  write(pen, label, colour, x, wide, y) {
    pen.font = FONT(12);
    const texts = opTexts(label);
    const text = texts.find((candidate) => candidate && pen.measureText(candidate).width + 6 < wide);
    if (text) {
      pen.fillStyle = colour;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillText(text, x + wide / 2, y);
    }
  }

  hatch(pen, x, y, wide, high, colour, gap = 6) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, wide, high);
    pen.clip();
    pen.strokeStyle = colour;
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (let at = Math.floor(x / gap) * gap - high; at < x + wide; at += gap) {
      pen.moveTo(at, y + high);
      pen.lineTo(at + high, y);
    }
    pen.stroke();
    pen.restore();
    pen.lineWidth = 1;
    pen.strokeStyle = colour;
    pen.strokeRect(x + 0.5, y + 0.5, Math.max(wide - 1, 0.5), high - 1);
  }

  drawExposed(pen, lane) {
    for (const [from, to, part] of lane.exposed) {
      const x = this.xOf(from);
      const wide = Math.min(this.xOf(to), this.left + this.width + 4) - x;
      if (wide < 0.7) {
        continue;
      }
      this.hatch(pen, x, lane.y + 1, wide, ROW - 3, this.colours.exposed);
      const text = `${part} ${this.unit.digits((to - from) / 1e6)}`;
      pen.font = FONT(12, 600);
      if (pen.measureText(text).width + 10 < wide) {
        pen.textAlign = "center";
        pen.textBaseline = "middle";
        pen.lineWidth = 4;
        pen.lineJoin = "round";
        pen.strokeStyle = this.colours.ground;
        pen.strokeText(text, x + wide / 2, lane.y + ROW / 2 - 1);
        pen.fillStyle = this.colours.ink;
        pen.fillText(text, x + wide / 2, lane.y + ROW / 2 - 1);
      }
    }
  }

  /// Shows the uncertainty of the end: a hatched box of one standard error in both directions, a line at the
  /// prediction, and a diamond at p99.
  drawEnd(pen, { row, stripY, p99 }) {
    const right = this.left + this.width;
    const end = this.xOf(row.makespan_us * 1e6);
    if (end > right) {
      pen.fillStyle = this.colours.quiet;
      pen.font = FONT(12);
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      pen.fillText(`ends at ${this.unit.text(row.makespan_us)} \u2192`, right, stripY + STRIP / 2 + 1);
      return;
    }
    const error = row.makespan_error ?? 0;
    const from = this.xOf(row.makespan_us * 1e6 * (1 - error));
    const to = Math.min(this.xOf(row.makespan_us * 1e6 * (1 + error)), right + 6);
    this.hatch(pen, from, stripY + 2, Math.max(to - from, 1), STRIP - 4, this.colours.quiet, 5);
    pen.fillStyle = this.colours.ink;
    pen.fillRect(end - 1, stripY, 2, STRIP);
    if (p99) {
      const x = this.xOf(p99 * 1e6);
      if (x < right + 4) {
        pen.strokeStyle = this.colours.ink;
        pen.fillStyle = this.colours.ground;
        pen.lineWidth = 2;
        pen.beginPath();
        pen.moveTo(x, stripY + 1);
        pen.lineTo(x + 5, stripY + STRIP / 2);
        pen.lineTo(x, stripY + STRIP - 1);
        pen.lineTo(x - 5, stripY + STRIP / 2);
        pen.closePath();
        pen.fill();
        pen.stroke();
      }
    }
  }

  /// Returns the op, the exposed time or the head at a position on the canvas; null if the position has none of these.
  at(x, y) {
    const panel = this.panels.find((candidate) => y >= candidate.y && y < candidate.stripY + STRIP);
    if (panel && y < panel.y + panel.head) {
      return { panel, head: true };
    }
    const lane = panel?.lanes.find((candidate) => y >= candidate.y && y < candidate.y + ROW);
    if (!lane || x < this.left) {
      return null;
    }
    const time = ((x - this.left) / this.width) * this.end;
    const near = this.end / this.width;
    const op = firstAfter(lane.ops, time - near / 2);
    if (op < lane.ops.length && lane.ops[op][1] <= time + near / 2) {
      return { panel, lane, op };
    }
    const gap = lane.exposed.find(([from, to]) => time >= from && time < to);
    return gap ? { panel, lane, gap } : null;
  }

  tell({ panel, lane, op, gap, head }) {
    const { timeline, row } = panel;
    if (head && isImplementation(row)) {
      return [row.strategy, ...implementationWords(row.strategy, row).split("\n")];
    }
    if (head) {
      const options = scheduleOptions(timeline.label).map(([name, words]) => `${name}: ${words}`);
      return [row.strategy, strategyWords(row.strategy), ...options].filter(Boolean);
    }
    const us = (ps) => this.unit.text(ps / 1e6);
    const where = `${timeline.label}, rank ${timeline.rank} of ${timeline.ranks}, lane ${lane.name}`;
    if (gap) {
      const why = {
        head: "No compute of the layer has begun: it waits for its first data.",
        bubble: "Compute waits between two pieces of work.",
        tail: "All compute of the layer is done, but communication is not.",
      }[gap[2]];
      return [`Exposed, ${gap[2]}: ${us(gap[1] - gap[0])}`, why, where];
    }
    const [, from, to, kind, label, critical] = lane.ops[op];
    const share = (to - from) / 1e6 / row.makespan_us;
    const name = timeline.kinds[kind];
    return [
      opText(timeline.labels[label]),
      `${us(to - from)}, ${percent(share)} of the time; ${this.unit.digits(from / 1e6)} to ${us(to)}`,
      `${KIND_WORDS[name] ?? name}${critical ? ", on the critical path: a faster op ends the run sooner" : ""}`,
      whySoLong(panel, lane.ops[op]),
      whyThen(panel, lane.ops[op]),
      where,
    ].filter(Boolean);
  }

  point(picked, x, y) {
    const before = this.picked;
    this.picked = picked;
    this.tip.hidden = !picked;
    if (picked) {
      this.spot = { x, y };
      this.showTip(picked);
      this.explain(picked);
    }
    if (before?.head !== picked?.head || before?.lane !== picked?.lane || before?.op !== picked?.op) {
      this.later();
    }
  }

  showTip(picked) {
    const { x, y } = this.spot;
    this.tip.replaceChildren(...this.tell(picked).map((line) => element("div", {}, line)));
    this.tip.style.left = `${Math.max(4, Math.min(x + 14, this.wide - this.tip.offsetWidth - 4))}px`;
    const below = y + 18;
    this.tip.style.top = `${below + this.tip.offsetHeight > this.height ? Math.max(y - this.tip.offsetHeight - 10, 0) : below}px`;
  }

  onKey(event) {
    const lanes = this.panels.flatMap((panel) => panel.lanes.map((lane) => ({ panel, lane })));
    if (event.key === "Escape") {
      this.point(null);
    } else if (event.key.startsWith("Arrow") && lanes.length > 0) {
      this.step(event.key, lanes);
    } else {
      return;
    }
    event.preventDefault();
  }
  step(key, lanes) {
    const index = lanes.findIndex((entry) => entry.lane === this.picked?.lane);
    let { panel, lane } = lanes[Math.max(index, 0)];
    let op = this.picked?.op ?? 0;
    if (index >= 0 && (key === "ArrowUp" || key === "ArrowDown")) {
      const time = lane.ops[op][1];
      ({ panel, lane } = lanes[Math.min(Math.max(index + (key === "ArrowUp" ? -1 : 1), 0), lanes.length - 1)]);
      op = firstAfter(lane.ops, time);
    } else if (index >= 0) {
      op += key === "ArrowLeft" ? -1 : 1;
    }
    op = Math.min(Math.max(op, 0), lane.ops.length - 1);
    const picked = { panel, lane, op };
    this.point(picked, this.xOf(lane.ops[op][1]), lane.y + ROW / 2);
    this.tip.scrollIntoView({ block: "nearest" });
    announce(this.tell(picked).join(". "));
  }
}

/// Returns words next to a name: "wins" or "ties"; for an implementation, whether it pays and the probability that it
/// beats serial. Bounds need none, because their labels name them as bounds.
function marksOf(row, rows) {
  if (withImplementations(rows)) {
    return isImplementation(row) && typeof row.beats_serial === "number" ? `${row === bestOf(rows) && payOf(rows) === "pays" && !narrow() ? "pays, " : ""}${chanceText(row.beats_serial)} likely to beat serial` : "";
  }
  return ["wins", "ties"].includes(row.verdict) ? row.verdict : "";
}

/// Returns the index of the first op that ends after a time. Ops of a lane do not overlap.
function firstAfter(ops, time) {
  let low = 0;
  let high = ops.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ops[middle][2] <= time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// Returns how the engine prices the op, if it prices all ops of this kind and time in the same way.
function whySoLong({ timeline, why }, [, from, to, kind]) {
  const us = (to - from) / 1e6;
  const matchingOps = (why?.ops ?? []).filter((op) => op.kind === timeline.kinds[kind] && us > op.shortest_us - 1e-4 && us < op.longest_us + 1e-4);
  const hows = new Set(matchingOps.map((op) => op.how));
  if (hows.size !== 1 || matchingOps[0].how === "") {
    return "";
  }
  return `${matchingOps.length === 1 ? `It is priced as ${shapeText(matchingOps[0].shape)}. ` : ""}${howText(matchingOps[0].how, matchingOps[0].kind)}`;
}

/// Returns why an op begins when it does, as far as the ops of its own rank show it.
function whyThen({ timeline }, op) {
  if (op[1] === 0) {
    return "Begins immediately.";
  }
  const enders = timeline.ops.filter((other) => other !== op && other[2] === op[1] && other[1] < other[2]);
  const before = enders.find((other) => other[0] !== op[0]) ?? enders[0];
  return before
    ? `Begins the moment ${opText(timeline.labels[before[4]])} (lane ${timeline.lanes[before[0]]}) ends.`
    : "Begins when the host has launched it and its peers are ready.";
}

function legendOf(entries) {
  return element(
    "ul",
    { class: "legend" },
    ...entries.map(([look, words]) => element("li", {}, look && element("span", { class: `swatch c-${look}`, "aria-hidden": "true" }), words)),
  );
}
