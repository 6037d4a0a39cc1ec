// SPDX-License-Identifier: Apache-2.0
// The winners around the chosen point, tokens by ranks. A second worker simulates these points one by one once the user
// stops changing settings.

const LOOKING = "Simulating nearby points\u2026";
const MAP_LEGEND = [
  ["pays", "pays3", "overlap pays; the stronger the colour, the more"],
  ["unclear", "unclear", "too close to call"],
  ["loses", "loses3", "overlap does not pay; the stronger the colour, the more it costs"],
  ["alone", "unclear", "nothing to compare with"],
  ["none", "none", "cannot be run"],
];

/// The colour shows whether overlap pays; its shade shows the difference.
function lookOf({ pay, gain, cost }) {
  const share = Math.abs(pay === "loses" ? cost : gain);
  const shade = share < 0.05 ? 1 : share < 0.15 ? 2 : 3;
  return pay === "pays" || pay === "loses" ? `${pay}${shade}` : "unclear";
}

class WinnersMap {
  constructor(place) {
    this.place = place;
    place.addEventListener("keydown", (event) => this.onKey(event));
    this.memory = new Map(); // results by the settings of a request
    this.results = new Map();
  }

  /// Returns tokens across and ranks down, with the chosen point among them. The line below the verdict needs three
  /// steps of tokens in each direction on every screen.
  axes(across = narrow() ? 2 : 3) {
    const seq = Number(setting("seq"));
    const ranks = Number(setting("ranks"));
    const seqs = Array.from({ length: 2 * across + 1 }, (_, i) => seq * 2 ** (i - across)).filter(
      (value) => Number.isInteger(value) && value >= 1 && value <= 2 ** 22,
    );
    const maxRanks = Math.max(gpusOf(facts.hardware.get(setting("hardware"))), ranks);
    const rankCounts = [...new Set([...doubles(2, 1024).map(Number), ranks])].filter((value) => value <= maxRanks).sort((a, b) => a - b);
    const chosen = rankCounts.indexOf(ranks);
    const from = Math.max(Math.min(chosen - 2, rankCounts.length - 5), 0);
    return { seqs, ranks: rankCounts.slice(from, from + 5) };
  }

  /// Returns the cells of the map, nearest to the chosen point first.
  cells() {
    const { seqs, ranks } = this.axes();
    const far = (value, chosen) => Math.abs(Math.log2(value / chosen));
    return ranks
      .flatMap((r) => seqs.map((s) => ({ seq: String(s), ranks: String(r) })))
      .sort(
        (a, b) => far(a.seq, setting("seq")) + far(a.ranks, setting("ranks")) - far(b.seq, setting("seq")) - far(b.ranks, setting("ranks")),
      );
  }

  /// Returns the settings for links half and twice as fast, which no cell shows.
  rates() {
    return ["link_bandwidth", "network_bandwidth"].flatMap((key) => {
      const times = /^x([\d.]+)$/.exec(setting(key));
      const used = key === "link_bandwidth" || typeof live.rows?.[0]?.network_rate_gb_s === "number";
      return times && used && key in state.presets
        ? [0.5, 2].map((by) => ({ [key]: `x${Number((Number(times[1]) * by).toPrecision(6))}` }))
        : [];
    });
  }

  /// Returns the result of a cell; {error} if only ideal schedules run there, although the point
  /// on the screen has implementations.
  known(cell) {
    const result = this.memory.get(this.keyOf(cell));
    return result?.ideal && withImplementations(live.rows ?? []) ? { error: "no implementation runs here" } : result;
  }

  keyOf(cell) {
    return JSON.stringify(engineSettings(cell));
  }

  /// Returns the points that the line below the verdict needs: other tokens, other ranks, other links.
  neighbours() {
    const { seqs, ranks } = this.axes(3);
    return [...seqs.map((value) => ({ seq: String(value) })), ...ranks.map((value) => ({ ranks: String(value) })), ...this.rates()];
  }

  /// Returns the line below the verdict, once all results around the point on the screen are known.
  change() {
    const isNow = JSON.stringify(live.settings) === this.keyOf({});
    return isNow && this.neighbours().every((cell) => this.memory.has(this.keyOf(cell))) ? this.sentence() : LOOKING;
  }

  /// Simulates the neighbours, and shows which changes would change the verdict.
  async look(simulator, isStale) {
    if ((await this.askAll(this.neighbours(), simulator, isStale)) && !isStale()) {
      put("change", this.change());
    }
  }

  async fill(simulator, isStale) {
    this.draw();
    if (await this.askAll(this.cells(), simulator, isStale)) {
      this.draw();
    }
  }

  /// Requests missing results; `isStale` returns whether the user has moved on. Returns true if all results are known
  /// afterwards.
  async askAll(cells, simulator, isStale) {
    for (const cell of cells) {
      const key = this.keyOf(cell);
      if (this.memory.has(key)) {
        continue;
      }
      let result;
      try {
        const settings = engineSettings(cell);
        result = cellOf(JSON.parse((await simulator.ask({ ask: "point", settings, timelines: false })).json), settings);
      } catch (error) {
        if (error.ended) {
          return false;
        }
        result = { error: error.message };
      }
      if (this.memory.size > 2000) {
        this.memory.clear();
      }
      this.memory.set(key, result);
      if (isStale()) {
        return false;
      }
      this.place.querySelector("table") && this.later();
    }
    return true;
  }

  /// Stores the result of the point on the screen, so that its cell needs no request. `settings` are those of the
  /// point's own request.
  learn(rows, settings) {
    this.memory.set(JSON.stringify(settings), cellOf(rows, settings));
  }

  later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const { seqs, ranks } = this.axes();
    const focused = document.activeElement?.dataset?.cell;
    const head = element(
      "tr",
      {},
      element("th", { scope: "col" }, "ranks"),
      ...seqs.map((seq) => element("th", { scope: "col" }, count(seq))),
    );
    const used = new Set();
    const rows = ranks.map((r) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, String(r)),
        ...seqs.map((s) => {
          const result = this.known({ seq: String(s), ranks: String(r) });
          result && used.add(result.name ? result.pay : "none");
          return element("td", {}, this.button(result, s, r));
        }),
      ),
    );
    const entries = MAP_LEGEND.filter(([pay]) => used.has(pay)).map(([pay, look, words]) =>
      element("li", { "data-pay": pay }, element("span", { class: `swatch ${look}`, "aria-hidden": "true" }), words),
    );
    const named = withImplementations(live.rows ?? []) ? "the fastest implementation that clearly beats serial, or serial if none does" : "the fastest schedule";
    this.place.replaceChildren(
      element(
        "p",
        { class: "note" },
        `Does overlap pay? Tokens across, ranks down; each cell names ${named}. ` +
          "Percentages are relative to the schedule without overlap. Choose a cell to go there.",
      ),
      scrollRegion("Map of winners", element("table", { class: "map-table" }, element("thead", {}, head), element("tbody", {}, ...rows))),
      element("ul", { class: "legend" }, ...entries),
    );
    if (focused) {
      this.place.querySelector(`[data-cell="${focused}"]`)?.focus({ preventScroll: true });
    }
  }

  button(result, seq, ranks) {
    const chosen = String(seq) === setting("seq") && String(ranks) === setting("ranks");
    const where = `${count(seq)} tokens, ${ranks} ranks`;
    const shared = {
      type: "button",
      "data-cell": `${seq}x${ranks}`,
      "aria-current": chosen ? "true" : null,
      tabindex: chosen ? null : "-1",
      onclick: () => change({ seq: String(seq), ranks: String(ranks) }),
    };
    if (!result?.name) {
      return element(
        "button",
        {
          ...shared,
          class: "cell none",
          "aria-label": `${where}: ${result ? `cannot be run. ${result.error ?? ""}` : "not simulated yet"}`,
          title: result?.error ?? null,
        },
        result ? "\u2013" : "\u2026",
      );
    }
    const against =
      result.gain === null ? "" : result.name === result.base ? "0%" : signedPercent(result.gain, 0);
    const words = result.words ?? `${result.pay === "unclear" ? "too close to call, " : ""}${result.tie ? `tie of ${listed(result.ties)}` : `${result.name} wins`}`;
    return element(
      "button",
      {
        ...shared,
        class: `cell ${lookOf(result)}`,
        "aria-label": `${where}: ${words}${against && !result.words ? `, ${against} against ${result.base}` : ""}`,
        title: `${where}: ${words}`,
      },
      result.pay === "unclear" ? (narrow() ? "close" : "too close") : result.tie ? "tie" : shortName(result.name),
      element("small", {}, against || "\u00a0"),
    );
  }

  /// Arrow keys move from cell to cell; Tab stops at only one of them.
  onKey(event) {
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const cell = event.target.closest("td");
    if (!by || !cell) {
      return;
    }
    event.preventDefault();
    const next = cell.closest("tbody").rows[cell.parentElement.sectionRowIndex + by[0]]?.cells[cell.cellIndex + by[1]];
    next?.querySelector("button")?.focus();
  }

  /// Names changes of the verdict: the nearest tokens and ranks with another verdict, and links half or twice as fast;
  /// without a change, states where the verdict holds.
  sentence() {
    const { seqs, ranks } = this.axes(3);
    const current = this.known({});
    if (!current?.name) {
      return "";
    }
    const name = (result) => (result.pay === "pays" ? "overlap pays" : result.pay === "loses" ? `${result.base} wins` : result.pay === "alone" ? `only ${result.name} runs` : "it is too close to call");
    const nearest = (values, key, words) => {
      const chosen = Number(setting(key));
      const resultAt = (value) => this.known({ [key]: String(value) });
      const find = (side) => {
        const differing = side.filter((value) => resultAt(value)?.name && resultAt(value).pay !== current.pay);
        // The nearest other verdict, then the nearest that differs from both.
        const clear = differing.find((value) => resultAt(value).pay !== resultAt(differing[0]).pay);
        return [...differing.slice(0, 1), ...(clear === undefined ? [] : [clear])];
      };
      const sides = [[...values].reverse().filter((value) => value < chosen), values.filter((value) => value > chosen)];
      return sides.flatMap(find).map((value) => [`at ${words(value)}`, name(resultAt(value))]);
    };
    const rates = this.rates()
      .map((cell) => ({ cell, result: this.known(cell) }))
      .filter(({ result }) => result?.name && result.pay !== current.pay)
      .map(({ cell, result }) => {
        const [[key, rate]] = Object.entries(cell);
        const times = sizeOf(rate) < sizeOf(setting(key)) ? "half" : "twice";
        return [`with ${key === "link_bandwidth" ? "links" : "a network"} ${times} as fast`, name(result)];
      });
    const changes = [
      ...nearest(seqs, "seq", (value) => `${count(value)} tokens`),
      ...nearest(ranks, "ranks", (value) => `${value} ranks`),
      ...rates,
    ];
    const ran = (values, key) => values.filter((value) => this.known({ [key]: String(value) })?.name);
    const along = (values, words, noun) => (values.length < 2 ? [] : [`from ${words(values[0])} to ${words(values.at(-1))} ${noun}`]);
    const rated =
      this.rates().filter((cell) => this.known(cell)?.name).length === this.rates().length && this.rates().length > 0;
    const extents = [
      ...along(ran(seqs, "seq"), count, "tokens"),
      ...along(ran(ranks, "ranks"), String, "ranks"),
      ...(rated ? ["with links half and twice as fast"] : []),
    ];
    // Combines places with the same outcome: "at 2 ranks and with links twice as fast it is too close to call".
    const outcomes = [...new Set(changes.map(([, outcome]) => outcome))];
    const sentences = outcomes.map((outcome) => `${listed(changes.filter(([, result]) => result === outcome).map(([at]) => at))} ${outcome}`);
    return changes.length > 0
      ? `The verdict would change: ${sentences.join("; ")}.`
      : extents.length > 0
        ? `This holds ${listed(extents)}: ${name(current)}.`
        : "";
  }
}

const SHORT = {
  ring_exchange: "ring ex.",
  looped_einsum: "looped",
  tokenweave: "weave",
  flash_overlap: "flash ov.",
  thunderkittens: "thunder",
  triton_distributed: "triton d.",
  triton_symm_mem: "triton s.",
  two_streams: "2 streams",
};
const narrow = () => matchMedia("(max-width: 700px)").matches;
const NARROW_NAMES = { commfuse: "fuse", cublasmp: "blasmp", ring_exchange: "ring" };
const shortName = (name) => (narrow() && NARROW_NAMES[name]) || (SHORT[name] ?? name.split("_")[0]);

/// Returns a cell that names the recommended implementation, or, if serial is clearly faster, the fastest of serial and
/// implementations that overlap nothing.
function recommendationCell({ have, serial, withoutOverlap, times, certainty, pay }) {
  const winner = withoutOverlap && timeOf(withoutOverlap) < timeOf(serial) ? withoutOverlap.strategy : "serial";
  const surely = certainty === null ? "" : `, ${sure(certainty)} ${times < 1 ? "to beat serial" : "that serial is faster"}`;
  const by = `${have.strategy} takes ${percent(Math.abs(1 - times))} ${times < 1 ? "less" : "more"} time than serial${surely}`;
  return {
    name: pay === "loses" ? winner : have.strategy,
    tie: pay === "unclear",
    ties: ["serial", have.strategy],
    gain: pay === "loses" ? 0 : times - 1,
    cost: times - 1,
    pay,
    base: pay === "loses" ? winner : "serial",
    words: `${pay === "pays" ? "" : pay === "loses" ? `${winner} wins; ` : "too close to call; "}${by}`,
  };
}

/// Returns the contents of a cell. `ideal` is true if implementations were requested and none was simulated.
function cellOf(rows, settings = {}) {
  const best = fastestOf(rows);
  if (!best) {
    return { error: rows.find((row) => row.reason)?.reason ?? "no schedule runs" };
  }
  const recommendation = recommendationOf(rows);
  if (recommendation) {
    return recommendationCell(recommendation);
  }
  const verdicts = verdictsOf(rows);
  const serial = baselineOf(rows);
  const rival = fastestOf(rows.filter(isOverlap));
  const ties = rows.filter((_, i) => verdicts[i] === "ties").map((row) => row.strategy);
  return {
    name: best.strategy,
    tie: verdicts[rows.indexOf(best)] === "ties",
    ties,
    gain: serial ? timeOf(best) / timeOf(serial) - 1 : null,
    cost: serial && rival ? timeOf(rival) / timeOf(serial) - 1 : 0, // cost of the best overlap
    pay: payOf(rows),
    base: serial?.strategy ?? "serial",
    ideal: (settings.as ?? "none") !== "none",
  };
}
