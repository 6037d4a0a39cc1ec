// SPDX-License-Identifier: Apache-2.0
// Compares two schedules: the differences between their times, by part and by op, and the sensitivity of the first.

const WHY_PARTS = [
  ["compute", "essential work, uncut"],
  ["slicing", "cost of cutting essential work"],
  ["stretch", "what interference adds"],
  ["local", "adds, packs and copies"],
  ["exposed", "nothing computes"],
];

class Why {
  constructor(place) {
    this.place = place;
    this.first = element("select", { id: "why-first" });
    this.second = element("select", { id: "why-second" });
    this.out = element("div", { "aria-live": "off" });
    for (const select of [this.first, this.second]) {
      select.addEventListener("change", () => {
        state.view.compare = `${this.first.value},${this.second.value}`;
        writeHash();
        this.fill();
      });
    }
    place.replaceChildren(
      element("div", { class: "pair" }, element("label", {}, "Compare", this.first), element("label", {}, "with", this.second)),
      this.out,
    );
  }

  /// Compares the winner with serial, unless the user has chosen.
  show(rows) {
    const order = shownOrder(rows).filter((i) => ran(rows[i]));
    const ids = order.map((i) => idOf(rows[i]));
    this.names = new Map(order.map((i) => [idOf(rows[i]), shortLabel(rows[i], rows)]));
    this.place.parentElement.hidden = ids.length < 2 || live.whole; // Whole models have no ops to compare.
    if (ids.length < 2 || live.whole) {
      return;
    }
    const fastest = recommendationOf(rows)?.have ?? fastestOf(rows);
    const best = fastest && idOf(fastest);
    const [a, b] = (state.view.compare ?? "").split(",");
    const first = ids.includes(a) ? a : best;
    const second =
      ids.includes(b) && b !== first
        ? b
        : first === "serial" || !ids.includes("serial")
          ? (ids.find((id) => id !== first && id !== "fused_kernel") ?? ids.find((id) => id !== first))
          : "serial";
    for (const [select, value] of [
      [this.first, first],
      [this.second, second],
    ]) {
      if ([...select.options].map((option) => option.value + option.text).join() !== ids.map((id) => id + this.names.get(id)).join()) {
        select.replaceChildren(...ids.map((id) => element("option", { value: id }, this.names.get(id))));
      }
      select.value = value;
    }
    const point = JSON.stringify(live.settings);
    if (this.point !== point) {
      this.point = point;
      // Answers about the previous point that arrive from now on are ignored.
      this.asking = (this.asking ?? 0) + 1;
      this.out.classList.add("stale-part");
    }
  }

  async fill() {
    const [a, b] = [this.first.value, this.second.value];
    const asking = (this.asking = (this.asking ?? 0) + 1);
    if (live.whole) {
      return;
    }
    if (!a || !b || a === b) {
      this.out.replaceChildren(element("p", { class: "note" }, "Choose two different schedules."));
      this.out.classList.remove("stale-part");
      return;
    }
    try {
      const [first, second] = await Promise.all([live.why(a), live.why(b)]);
      if (asking === this.asking) {
        this.draw(first, second, this.names.get(a) ?? a, this.names.get(b) ?? b);
      }
    } catch (error) {
      if (asking === this.asking && !error.ended) {
        this.out.replaceChildren(element("p", { class: "problem" }, error.message));
      }
    }
    asking === this.asking && this.out.classList.remove("stale-part");
  }

  draw(first, second, a, b) {
    const [x, y] = [first.result, second.result];
    const unit = timeUnit(Math.max(x.makespan_us, y.makespan_us));
    const differences = WHY_PARTS.map(([name, words]) => [name, words, x[`${name}_us`] - y[`${name}_us`]]);
    this.out.replaceChildren(
      element("p", { class: "lead" }, whySentence(x, y, a, b, differences, unit)),
      diffBars(differences, x.makespan_us - y.makespan_us, unit),
      scrollRegion(`Ops of ${a} and ${b}`, opTable(first, second, a, b, unit)),
      holdsOf(first, a),
    );
  }
}

function whySentence(x, y, a, b, differences, unit) {
  const gap = x.makespan_us - y.makespan_us;
  const amount = (us) => unit.text(Math.abs(us));
  const helps = differences
    .filter(([, , us]) => Math.sign(us) === Math.sign(gap) && Math.abs(us) > 0.02 * Math.abs(gap))
    .sort((p, q) => Math.abs(q[2]) - Math.abs(p[2]));
  const costs = differences.filter(([, , us]) => us !== 0 && Math.sign(us) !== Math.sign(gap) && Math.abs(us) > 0.02 * Math.abs(gap));
  const inWords = ([name, , us]) => `${amount(us)} ${us < 0 ? "less" : "more"} ${name}`;
  const lead =
    gap === 0
      ? `${a} and ${b} take the same time`
      : `${a} takes ${amount(gap)} ${gap < 0 ? "less" : "more"} than ${b} (${percent(Math.abs(gap) / y.makespan_us)})`;
  return `${lead}${helps.length > 0 ? `: ${listed(helps.map(inWords))}` : ""}${costs.length > 0 ? `, offset by ${listed(costs.map(inWords))}` : ""}.`;
}

/// Draws less time in green, to the left, and more time in orange, to the right.
function diffBars(differences, total, unit) {
  const largest = Math.max(...differences.map(([, , us]) => Math.abs(us)), Math.abs(total), 1e-9);
  const lines = [...differences, ["time", "all of it", total]].flatMap(([name, words, us]) => {
    const bar = element("i", { class: us < 0 ? "less" : "more" });
    bar.style.width = `${(Math.abs(us) / largest) * 49}%`;
    bar.style.left = us < 0 ? `${50 - (Math.abs(us) / largest) * 49}%` : "50%";
    return [
      element("span", { title: words }, name === "time" ? element("b", {}, "time") : name),
      element("span", { class: "rod", "aria-hidden": "true" }, bar, element("b")),
      element("span", { class: "time" }, `${Number.parseFloat(unit.digits(us)) > 0 ? "+" : ""}${unit.text(us)}`),
    ];
  });
  return element("div", { class: "diff" }, ...lines);
}

/// Lists the ops of both schedules, with ops of the same shape on one line.
function opTable(first, second, a, b, unit) {
  const kinds = ["essential", "communication", "local"];
  const lines = new Map();
  [
    [first, 0],
    [second, 1],
  ].forEach(([why, side]) =>
    why.ops.forEach((op) => {
      const key = `${op.kind} ${op.shape}`;
      const line = lines.get(key) ?? { kind: op.kind, shape: shapeText(op.shape), how: op.how, sides: [null, null] };
      const before = line.sides[side] ?? { count: 0, us: 0 };
      line.sides[side] = { count: before.count + op.count, us: before.us + op.together_us };
      lines.set(key, line);
    }),
  );
  const cells = (side) =>
    side ? [element("span", { class: "each" }, `${side.count} \u00d7 ${unit.digits(side.us / side.count)} = `), unit.digits(side.us)] : ["\u2013"];
  const weight = (line) => Math.max(...line.sides.map((side) => side?.us ?? 0));
  const body = kinds.flatMap((kind) => {
    const kindLines = [...lines.values()].filter((line) => line.kind === kind).sort((x, y) => weight(y) - weight(x));
    const sum = (side) => kindLines.reduce((total, line) => total + (line.sides[side]?.us ?? 0), 0);
    return kindLines.length === 0
      ? []
      : [
          element(
            "tr",
            { class: "group" },
            element("th", { scope: "rowgroup" }, { essential: "Work, with slicing and stretch", local: "Local", communication: "Communication, hidden or not" }[kind]),
            element("td", {}, unit.digits(sum(0))),
            element("td", {}, unit.digits(sum(1))),
            element("td"),
          ),
          ...kindLines
            .slice(0, 12)
            .map((line) =>
              element(
                "tr",
                {},
                element("th", { scope: "row" }, line.shape),
                element("td", {}, ...cells(line.sides[0])),
                element("td", {}, ...cells(line.sides[1])),
                element("td", { class: "words" }, line.how.replace(/(\d) x (\d)/g, "$1 \u00d7 $2")),
              ),
            ),
        ];
  });
  const head = element(
    "tr",
    {},
    element("th", { scope: "col" }, "Op, as priced"),
    ...[a, b].map((name) => element("th", { scope: "col" }, name, element("span", { class: "unit" }, unit.name))),
    element("th", { scope: "col", class: "words" }, "How it runs"),
  );
  return element("table", { class: "ops" }, element("thead", {}, head), element("tbody", {}, ...body));
}

/// Names a parameter, or the residual of a fit, inside a sentence.
const holdName = (name) => shapeText(name).replace(/^accelerator\./, "").replace(/^(\S+), residual of its fit$/, "the residual of the fit of $1");

/// Returns the largest uncertainties of the first schedule.
function holdsOf(why, name) {
  const rows = why.holds
    .slice(0, 5)
    .map((hold) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, holdName(hold.name)),
        element("td", {}, hold.provenance ? (PROVENANCES[hold.provenance] ?? hold.provenance) : "residual of a fit"),
        element("td", {}, `\u00b1${percent(hold.standard_error)}`),
        element("td", {}, signedPercent(hold.effect)),
        element(
          "td",
          {},
          hold.elasticity === null ? "\u2013" : signedPercent(hold.elasticity / 100, 2),
        ),
      ),
    );
  const head = element(
    "tr",
    {},
    ...["Parameter", "Known from", "Error", "Time at +1\u03c3", "Time at +1%"].map((title) => element("th", { scope: "col" }, title)),
  );
  return element(
    "div",
    {},
    element("p", { class: "depends" }, dependsSentence(why.holds, name)),
    element(
      "details",
      {},
      element("summary", {}, `The parameters that the time of ${name} depends on most`),
      scrollRegion("Sensitivity", element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))),
    ),
  );
}

/// Names the parameter whose error changes the time most.
function dependsSentence([hold], name) {
  if (!hold) {
    return "";
  }
  const parameter = holdName(hold.name);
  const known = hold.provenance
    ? `${PROVENANCES[hold.provenance] ?? hold.provenance}, \u00b1${percent(hold.standard_error)}`
    : parameter.startsWith("the residual")
      ? `\u00b1${percent(hold.standard_error)}`
      : `known to \u00b1${percent(hold.standard_error)} after the fit`;
  const way = hold.effect < 0 ? "shortens" : "lengthens";
  return `The time of ${name} depends most on ${parameter} (${known}): one standard error more ${way} it by ${percent(Math.abs(hold.effect))}.`;
}
