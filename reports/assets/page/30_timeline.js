// SPDX-License-Identifier: Apache-2.0
// Strategies on one time axis, rank by rank and lane by lane, drawn on a canvas: 200,000 bars stay smooth because only
// visible bars of each lane are drawn.

const ROW = 22; // pixels of a lane
const HEAD = 30; // pixels of the line above the lanes of a rank
const LINE = 16; // pixels of each further line above the lanes, if words do not fit on one line
const AXIS = 34; // pixels below everything
const MAX_HEIGHT = { one: 1600, all: 640 }; // pixels, for one rank of each schedule or all ranks; scrolling reaches the rest
const KINDS = ["essential", "local", "communication"];
const CRITICAL = KINDS.length;

/// Returns the lanes of a block, each with its range of bars in order of time. Bars of a lane do not overlap.
function lanesOf(block) {
  const lanes = block.lanes.map((lane) => ({ ...lane, from: 0, to: 0 }));
  const laneOf = block.data.lane;
  for (let i = 0; i < laneOf.length; ++i) {
    if (i === 0 || laneOf[i] !== laneOf[i - 1]) {
      lanes[laneOf[i]].from = i;
    }
    lanes[laneOf[i]].to = i + 1;
  }
  return lanes;
}

const svgElement = (name, attributes, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};

/// Shows the meanings of colours, as above the static drawing, and of the line under the critical path.
function legendOfTimeline() {
  const box = (role) => svgElement("rect", { width: 16, height: 12, class: `cf-${role}` });
  const hatched = svgElement("g", {},
    svgElement("rect", { x: 0.5, y: 0.5, width: 15, height: 11, class: "cf-hatched", fill: "none" }),
    ...[0, 6, 12].map((x) => svgElement("path", { d: `M${Math.max(x - 8, 0)} ${x < 8 ? 4 + x : 12}L${Math.min(x + 4, 16)} ${x > 12 ? x - 12 : 0}`, class: "cf-hatch" })));
  const path = svgElement("g", {}, svgElement("rect", { width: 16, height: 9, class: "cf-essential" }), svgElement("rect", { y: 9, width: 16, height: 3, class: "cf-ink" }));
  const entries = [[box("essential"), "essential compute"], [box("local"), "local: adds, packs, copies"], [box("communication"), "communication"],
    [hatched, "exposed: neither essential nor local work"], [path, "on the critical path"]];
  return element("ul", { class: "legend" }, ...entries.map(([swatch, text]) =>
    element("li", {}, svgElement("svg", { class: "cf-figure", width: 16, height: 12, viewBox: "0 0 16 12", "aria-hidden": "true" }, swatch), text)));
}

class Timeline {
  constructor(figure, block) {
    this.block = block;
    this.lanes = lanesOf(block);
    this.unit = timeUnit(block.longest);
    this.view = { from: 0, to: block.longest * 1.01 };
    this.all = false;
    this.scroll = 0;
    this.picked = null; // { row, bar }
    this.build(figure);
    this.choose();
    this.recolour();
    this.observe();
  }

  build(figure) {
    this.canvas = element("canvas", {
      class: "timeline",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "timeline",
      "aria-label": `${this.block.title}. Arrow keys move between ops and between lanes; plus and minus zoom; shift with arrows pans; 0 shows all.`,
    });
    this.tip = element("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    const place = element("div", { class: "cf-live timeline-box" }, legendOfTimeline(), this.canvas, this.tip);
    figure.querySelector(".cf-static").before(place);
    figure.classList.add("live");
    figure.querySelector("figcaption").append(this.tools(figure));
  }

  tools(figure) {
    const about = this.block;
    const ranks = element("button", { type: "button", "aria-pressed": "false" }, "All ranks");
    ranks.addEventListener("click", () => {
      this.all = !this.all;
      ranks.setAttribute("aria-pressed", String(this.all));
      this.choose();
      this.draw();
    });
    const tools = element("div", { class: "tools", role: "group", "aria-label": "This timeline" });
    if (about.lanes.some((lane) => !lane.critical)) {
      tools.append(ranks);
    }
    tools.append(
      button("+", "Zoom in", () => this.zoom(0.5)),
      button("\u2212", "Zoom out", () => this.zoom(2)),
      button("Reset", "Show all", () => this.reset()),
      button("SVG", "Save the figure as SVG", () => save(`${about.id}.svg`, "image/svg+xml", standaloneSvg(figure))),
      button("CSV", "Save every bar as CSV", () => save(`${about.id}.csv`, "text/csv", this.csv())),
    );
    return tools;
  }

  csv() {
    const rows = [];
    for (const lane of this.lanes) {
      for (let i = lane.from; i < lane.to; ++i) {
        const op = this.opOf(i);
        const { start, length } = this.block.data;
        rows.push([lane.run, lane.rank, lane.name, this.labelOf(i), KINDS[this.kindOf(i)], start[i] / 1e6, length[i] / 1e6,
          op.bytes ?? "", op.flops ?? "", this.isCritical(i) ? 1 : 0]);
      }
    }
    return csvOf(["schedule", "rank", "lane", "op", "purpose", "start_us", "length_us", "bytes", "flops", "critical_path"], rows);
  }

  labelOf(i) {
    return this.block.labels[this.block.data.label[i]];
  }
  opOf(i) {
    return this.block.ops[this.block.data.op[i]];
  }
  kindOf(i) {
    return this.block.data.flags[i] & 3;
  }
  isCritical(i) {
    return (this.block.data.flags[i] & 4) !== 0;
  }

  /// Chooses the visible lanes; `y` in `rows` is in pixels from the top of all lanes.
  choose() {
    this.rows = [];
    let y = 0;
    let panel = "";
    for (const lane of this.lanes) {
      if (!this.all && !lane.critical) {
        continue;
      }
      const name = `${lane.panel} ${lane.rank}`;
      if (name !== panel) {
        const words = this.wordsOf(lane);
        const tall = HEAD + LINE * (words.lines.length - 1 + (words.below ? 1 : 0));
        y += panel === "" ? tall : tall + 8;
        panel = name;
        this.rows.push({ lane, y: y - tall, tall, head: true, words });
      }
      this.rows.push({ lane, y, head: false });
      y += ROW;
    }
    this.chosenFor = this.canvas.clientWidth;
    this.content = y + 4;
    this.height = Math.min(this.content, this.all ? MAX_HEIGHT.all : MAX_HEIGHT.one) + AXIS;
    this.scroll = Math.min(this.scroll, this.content - (this.height - AXIS));
    this.canvas.style.height = `${this.height}px`;
  }

  get pen() {
    return (this.pencil ??= this.canvas.getContext("2d", { alpha: false }));
  }

  /// Returns the words above the lanes of a rank: the name of the schedule, broken between words if it is wider than
  /// the canvas, and facts about the run, after the name or on a separate line.
  wordsOf(lane) {
    const { panels } = this.block;
    const panel = panels[lane.panel];
    const critical = this.lanes.filter((other) => other.critical).map((other) => other.rank);
    const tellsRank = this.all || critical.some((rank) => rank !== critical[0]);
    const parts = [...(panels.some((other) => other.kind === "measured") ? [panel.kind] : []), panel.text,
      ...(panel.mfu ? [`MFU ${panel.mfu}`] : []), ...(tellsRank ? [`rank ${lane.rank}`] : [])];
    const facts = parts.join(" \u00b7 ");
    const space = Math.max(this.canvas.clientWidth - 16, 120);
    this.pen.font = FONT(13, 600);
    const lines = [""];
    for (const word of lane.run.split(" ")) {
      const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
      if (lines.at(-1) && this.pen.measureText(longer).width > space) {
        lines.push(word);
      } else {
        lines[lines.length - 1] = longer;
      }
    }
    const end = this.pen.measureText(lines.at(-1)).width + 10;
    this.pen.font = FONT(12);
    return { lines, facts, end, below: end + this.pen.measureText(facts).width > space };
  }

  recolour() {
    this.colours = palette();
  }

  observe() {
    new ResizeObserver(() => {
      if (this.canvas.clientWidth !== this.chosenFor) {
        this.choose(); // Names break differently at this width.
      }
      this.draw();
    }).observe(this.canvas);
    darkness.addEventListener("change", () => {
      this.recolour();
      this.draw();
    });
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.onDown(event));
    canvas.addEventListener("pointermove", (event) => this.onMove(event));
    canvas.addEventListener("pointerup", () => (this.drag = null));
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    canvas.addEventListener("blur", () => this.point(null));
  }

  get left() {
    return Math.min(170, this.canvas.clientWidth * 0.24);
  }
  get width() {
    return Math.max(this.canvas.clientWidth - this.left - 10, 10);
  }
  xOf(ps) {
    return this.left + ((ps - this.view.from) / (this.view.to - this.view.from)) * this.width;
  }
  timeAt(x) {
    return this.view.from + ((x - this.left) / this.width) * (this.view.to - this.view.from);
  }

  /// Returns the index of the first bar of a lane that ends after a time.
  firstAfter(lane, time) {
    const { start, length } = this.block.data;
    let low = lane.from;
    let high = lane.to;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (start[middle] + length[middle] <= time) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  draw() {
    const { canvas } = this;
    const scale = globalThis.devicePixelRatio || 1;
    const [width, height] = [Math.round(canvas.clientWidth * scale), Math.round(this.height * scale)];
    if (canvas.width !== width || canvas.height !== height) {
      [canvas.width, canvas.height] = [width, height];
    }
    const { pen } = this;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.fillStyle = this.colours.ground;
    pen.fillRect(0, 0, canvas.clientWidth, this.height);
    pen.save();
    pen.beginPath();
    pen.rect(0, 0, canvas.clientWidth, this.height - AXIS);
    pen.clip();
    pen.translate(0, -this.scroll);
    this.drawGrid(pen);
    for (const row of this.rows) {
      if (row.y + (row.tall ?? ROW) >= this.scroll && row.y <= this.scroll + this.height - AXIS) {
        row.head ? this.drawHead(pen, row) : this.drawLane(pen, row);
      }
    }
    pen.restore();
    this.drawAxis(pen);
    this.drawScroll(pen);
    ++report.frames;
  }

  ticks() {
    const span = this.unit.value(this.view.to - this.view.from);
    const wanted = span / Math.max(this.width / 90, 2);
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= wanted);
    const scale = (this.view.to - this.view.from) / span;
    const ticks = [];
    for (let i = Math.ceil(this.view.from / scale / step); i * step * scale <= this.view.to; ++i) {
      ticks.push({ at: i * step * scale, text: `${Number((i * step).toPrecision(12))}` });
    }
    return ticks;
  }

  drawGrid(pen) {
    pen.strokeStyle = this.colours.grid;
    pen.lineWidth = 1;
    pen.beginPath();
    for (const { at } of this.ticks()) {
      pen.moveTo(this.xOf(at), this.scroll);
      pen.lineTo(this.xOf(at), this.scroll + this.height);
    }
    pen.stroke();
  }

  drawAxis(pen) {
    const y = this.height - AXIS;
    pen.strokeStyle = this.colours.axis;
    pen.beginPath();
    pen.moveTo(this.left, y + 0.5);
    pen.lineTo(this.left + this.width, y + 0.5);
    pen.stroke();
    pen.fillStyle = this.colours.quiet;
    pen.font = FONT(12);
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const { at, text } of this.ticks()) {
      pen.fillText(text, this.xOf(at), y + 5);
    }
    pen.textAlign = "left";
    pen.fillText(`time (${this.unit.name})`, 8, y + 5);
  }

  /// Draws the scroll position as a bar at the right edge; nothing if all lanes are visible.
  drawScroll(pen) {
    const tall = this.height - AXIS;
    if (this.content > tall) {
      pen.fillStyle = this.colours.axis;
      pen.fillRect(this.canvas.clientWidth - 6, (this.scroll / this.content) * tall, 4, (tall / this.content) * tall);
    }
  }

  drawHead(pen, { y, tall, words }) {
    pen.textAlign = "left";
    pen.textBaseline = "alphabetic";
    const { lines, facts, end, below } = words;
    let at = y + tall - 9 - LINE * (lines.length - 1 + (below ? 1 : 0));
    pen.fillStyle = this.colours.text;
    pen.font = FONT(13, 600);
    for (const line of lines) {
      pen.fillText(line, 8, at);
      at += LINE;
    }
    pen.fillStyle = this.colours.quiet;
    pen.font = FONT(12);
    pen.fillText(facts, below ? 8 : 8 + end, below ? at : at - LINE);
  }

  drawLane(pen, { lane, y }) {
    pen.fillStyle = this.colours.quiet;
    pen.font = FONT(12);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillText(lane.name, this.left - 8, y + ROW / 2 - 1);
    pen.save();
    pen.beginPath();
    pen.rect(this.left, y, this.width, ROW);
    pen.clip();
    this.drawBars(pen, lane, y);
    this.drawExposed(pen, lane, y);
    pen.restore();
  }

  /// Draws the bars of a lane. Merges the bars within one pixel into one bar, by bisection: the cost depends on pixels,
  /// not on bars.
  drawBars(pen, lane, y) {
    const { start, length } = this.block.data;
    const psPerPixel = (this.view.to - this.view.from) / this.width;
    const top = y + 2;
    const tall = ROW - 5;
    let kind = -1;
    const paint = (next) => {
      if (next !== kind) {
        kind = next; // Setting a colour costs more than filling a pixel.
        pen.fillStyle = next === CRITICAL ? this.colours.ink : this.colours[KINDS[next]];
      }
    };
    for (let i = this.firstAfter(lane, this.view.from); i < lane.to && start[i] < this.view.to; ) {
      const from = Math.max(this.xOf(start[i]), this.left - 2);
      if (length[i] < psPerPixel) {
        const next = Math.max(this.firstAfter(lane, start[i] + psPerPixel), i + 1);
        let critical = false;
        for (let j = i; j < next && j < i + 32; ++j) {
          critical ||= this.isCritical(j);
        }
        paint(this.kindOf(i));
        pen.fillRect(from, top, 1, critical ? tall - 3 : tall);
        if (critical) {
          paint(CRITICAL);
          pen.fillRect(from, y + ROW - 5, 1, 3);
        }
        i = next;
        continue;
      }
      this.drawBar(pen, i, from, top, tall, y);
      kind = -1;
      ++i;
    }
  }

  drawBar(pen, i, from, top, tall, y) {
    const { start, length } = this.block.data;
    const to = Math.min(this.xOf(start[i] + length[i]), this.left + this.width + 2);
    const kind = KINDS[this.kindOf(i)];
    const wide = Math.max(to - from - (to - from > 3 ? 1 : 0), 0.5);
    pen.fillStyle = this.colours[kind];
    pen.fillRect(from, top, wide, tall);
    this.underline(pen, this.isCritical(i), from, wide, y);
    if (this.picked && this.picked.bar === i) {
      pen.strokeStyle = this.colours.ink;
      pen.lineWidth = 2;
      pen.strokeRect(from + 1, top + 1, Math.max(wide - 2, 1), tall - 2);
    }
    if (wide > 26) {
      this.write(pen, i, kind, from, wide, top + tall / 2);
    }
  }

  /// Draws the critical path as a line at the foot of its bars.
  underline(pen, critical, from, wide, y) {
    if (critical) {
      pen.fillStyle = this.colours.ink;
      pen.fillRect(from, y + ROW - 5, wide, 3);
    }
  }

  write(pen, i, kind, from, wide, y) {
    const label = this.labelOf(i);
    pen.font = FONT(11);
    const texts = [label, label.slice(label.indexOf(" ") + 1), /\[(\d+)\]$/.exec(label)?.[1] ?? ""];
    const text = texts.find((candidate) => candidate && pen.measureText(candidate).width + 6 < wide);
    if (text) {
      pen.fillStyle = this.colours.on(kind);
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillText(text, from + wide / 2, y - 1);
    }
  }

  drawExposed(pen, lane, y) {
    for (const [from, to, place] of lane.exposed ?? []) {
      if (to < this.view.from || from > this.view.to) {
        continue;
      }
      const left = Math.max(this.xOf(from), this.left - 4);
      const wide = Math.min(this.xOf(to), this.left + this.width + 4) - left;
      if (wide < 0.7) {
        continue;
      }
      pen.save();
      pen.beginPath();
      pen.rect(left, y + 2, wide, ROW - 5);
      pen.clip();
      pen.strokeStyle = this.colours.exposed;
      pen.lineWidth = 1.6;
      pen.beginPath();
      for (let x = Math.floor(left / 7) * 7 - ROW; x < left + wide; x += 7) {
        pen.moveTo(x, y + ROW);
        pen.lineTo(x + ROW, y);
      }
      pen.stroke();
      pen.restore();
      pen.strokeStyle = this.colours.exposed;
      pen.lineWidth = 1;
      pen.strokeRect(left + 0.5, y + 2.5, Math.max(wide - 1, 0.5), ROW - 6);
      this.writeExposed(pen, place, to - from, left, wide, y + ROW / 2 - 1);
    }
  }

  writeExposed(pen, place, length, left, wide, y) {
    pen.font = FONT(11, 600);
    const text = [`${place} ${this.unit.text(length)}`, this.unit.digits(length)].find((candidate) => pen.measureText(candidate).width + 10 < wide);
    if (!text) {
      return;
    }
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineWidth = 4;
    pen.lineJoin = "round";
    pen.strokeStyle = this.colours.ground;
    pen.strokeText(text, left + wide / 2, y);
    pen.fillStyle = this.colours.text;
    pen.fillText(text, left + wide / 2, y);
  }

  // Actions of the user.

  zoom(factor, x = this.left + this.width / 2) {
    const at = this.timeAt(x);
    const minSpan = 1e3; // a nanosecond, in picoseconds
    const span = Math.min(Math.max((this.view.to - this.view.from) * factor, minSpan), this.block.longest * 1.01);
    const share = (x - this.left) / this.width;
    this.show(at - share * span, span);
  }
  show(from, span) {
    const start = Math.min(Math.max(from, 0), this.block.longest * 1.01 - span);
    this.view = { from: start, to: start + span };
    this.later();
  }
  reset() {
    this.view = { from: 0, to: this.block.longest * 1.01 };
    this.later();
  }
  pan(share) {
    const span = this.view.to - this.view.from;
    this.show(this.view.from + share * span, span);
  }
  /// Draws at most once per frame.
  later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  /// The wheel scrolls the page unless the timeline has the focus or Ctrl is held.
  onWheel(event) {
    if (!event.ctrlKey && document.activeElement !== this.canvas) {
      return;
    }
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.pan((event.deltaX || event.deltaY) / 1000);
      return;
    }
    this.zoom(Math.exp(Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 200) * 0.002), event.offsetX);
  }
  onDown(event) {
    this.canvas.focus({ preventScroll: true });
    this.drag = { x: event.offsetX, y: event.offsetY };
    this.canvas.setPointerCapture(event.pointerId);
  }
  onMove(event) {
    if (this.drag) {
      this.point(null);
      const span = this.view.to - this.view.from;
      const maxScroll = Math.max(this.content - (this.height - AXIS), 0);
      this.scroll = Math.min(Math.max(this.scroll - (event.offsetY - this.drag.y), 0), maxScroll);
      this.show(this.view.from - ((event.offsetX - this.drag.x) / this.width) * span, span);
      this.drag = { x: event.offsetX, y: event.offsetY };
      return;
    }
    this.point(this.barAt(event.offsetX, event.offsetY), event.offsetX, event.offsetY);
  }
  barAt(x, y) {
    const row = this.rows.findIndex((candidate) => !candidate.head && y + this.scroll >= candidate.y && y + this.scroll < candidate.y + ROW);
    if (row < 0 || x < this.left || y > this.height - AXIS) {
      return null;
    }
    const { lane } = this.rows[row];
    const time = this.timeAt(x);
    const bar = this.firstAfter(lane, time);
    const near = (this.view.to - this.view.from) / this.width;
    const gap = (lane.exposed ?? []).find(([from, to]) => time >= from && time < to);
    return bar < lane.to && this.block.data.start[bar] <= time + near && !gap ? { row, bar } : gap ? { row, gap } : null;
  }
  tellBar({ row, bar, gap }) {
    const { lane } = this.rows[row];
    const where = `${lane.run}, rank ${lane.rank}, ${lane.name}`;
    if (gap) {
      return [`exposed, ${gap[2]}: ${this.unit.text(gap[1] - gap[0])}`, where];
    }
    const { start, length } = this.block.data;
    const op = this.opOf(bar);
    const lines = [
      this.labelOf(bar),
      `${this.unit.digits(start[bar])} to ${this.unit.text(start[bar] + length[bar])}: ${this.unit.text(length[bar])}, ${this.block.panels[lane.panel].kind}`,
    ];
    op.bytes && lines.push(`${grouped(op.bytes)} bytes, ${fixed(op.bytes / length[bar] * 1e3, 1)} GB/s`);
    op.flops && lines.push(`${scientific(op.flops)} FLOPs, ${fixed(op.flops / length[bar], 1)} TFLOP/s`);
    lines.push(`${KINDS[this.kindOf(bar)]}${this.isCritical(bar) ? ", on the critical path" : ""}`, where);
    return lines;
  }
  point(picked, x, y) {
    const before = this.picked?.bar;
    this.picked = picked;
    this.tip.hidden = !picked;
    if (picked) {
      this.tip.replaceChildren(...this.tellBar(picked).map((line) => element("div", {}, line)));
      const wide = this.tip.offsetWidth;
      this.tip.style.left = `${Math.max(4, Math.min(x + 14, this.canvas.clientWidth - wide - 4))}px`;
      this.tip.style.top = `${this.canvas.offsetTop + y + 16}px`;
    }
    if (before !== picked?.bar) {
      this.later();
    }
  }

  onKey(event) {
    const pans = { ArrowLeft: -0.15, ArrowRight: 0.15 };
    const zooms = { "+": 0.5, "=": 0.5, "-": 2 };
    if (event.key in zooms) {
      this.zoom(zooms[event.key]);
    } else if (event.key === "0" || event.key === "Home") {
      this.reset();
    } else if (event.shiftKey && event.key in pans) {
      this.pan(pans[event.key]);
    } else if (event.key.startsWith("Arrow")) {
      this.step(event.key);
    } else if (event.key === "Escape") {
      this.point(null);
    } else {
      return;
    }
    event.preventDefault();
  }
  /// Moves to a neighbouring op of the lane, or to the op that runs at the same time on a neighbouring lane.
  step(key) {
    const rows = this.rows.map((row, i) => ({ ...row, i })).filter((row) => !row.head && row.lane.from < row.lane.to);
    const current = rows.findIndex((row) => row.i === this.picked?.row);
    let row = rows[Math.max(current, 0)];
    let bar = this.picked?.bar ?? this.firstAfter(row.lane, this.view.from);
    if (current >= 0 && (key === "ArrowUp" || key === "ArrowDown")) {
      const time = this.block.data.start[bar];
      row = rows[Math.min(Math.max(current + (key === "ArrowUp" ? -1 : 1), 0), rows.length - 1)];
      bar = Math.min(this.firstAfter(row.lane, time), row.lane.to - 1);
    } else if (current >= 0) {
      bar += key === "ArrowLeft" ? -1 : 1;
    }
    bar = Math.min(Math.max(bar, row.lane.from), row.lane.to - 1);
    this.bringIntoView(row, bar);
    this.point({ row: row.i, bar }, this.xOf(Math.max(this.block.data.start[bar], this.view.from)), row.y - this.scroll);
    announce(this.tellBar(this.picked).join(". "));
  }
  bringIntoView(row, bar) {
    const { start, length } = this.block.data;
    const span = this.view.to - this.view.from;
    if (start[bar] + length[bar] > this.view.to || start[bar] < this.view.from) {
      this.show(start[bar] - span * 0.3, span);
    }
    const tall = this.height - AXIS;
    if (row.y < this.scroll || row.y + ROW > this.scroll + tall) {
      this.scroll = Math.min(Math.max(row.y - tall / 2, 0), Math.max(this.content - tall, 0));
    }
  }
}

const FONT = (size, weight = 400) => `${weight} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif`;
const grouped = (count) => String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
const scientific = (count) => count.toExponential(2).replace("e+", "e");

async function startTimelines() {
  report.frames = 0;
  for (const figure of document.querySelectorAll("figure[data-timeline]")) {
    const block = await blockColumns(figure.dataset.timeline);
    if (block) {
      const timeline = new Timeline(figure, block);
      timeline.draw();
      report.timelines.push(timeline);
    }
  }
}
