// SPDX-License-Identifier: Apache-2.0
// The verdict in a sentence, the bars and the table of all numbers.

const timeOf = (row) => row.makespan_us ?? (row.time_ms === undefined || row.time_ms === null ? null : row.time_ms * 1000);
const errorOf = (row) => row.makespan_error ?? row.time_error ?? null;
const isBound = (row) => row.verdict === "bound" || row.bound === "yes" || row.strategy === "fused_kernel";
const ran = (row) => timeOf(row) !== null && (row.status ?? "ok") === "ok";

function fastestOf(rows) {
  return rows.filter((row) => ran(row) && !isBound(row)).sort((a, b) => timeOf(a) - timeOf(b))[0] ?? null;
}

/// Returns the row of the verdict: the recommended row, or the fastest.
const bestOf = (rows) => recommendationOf(rows)?.have ?? fastestOf(rows);

/// Returns "wins", "ties", "loses" or "bound" for every row, null for a row without a result. Whole models have no such
/// column, so the rule is applied here: a row ties if it is near the fastest, or if the fastest is not clearly faster.
function verdictsOf(rows) {
  const best = fastestOf(rows);
  const isNear = (row) => timeOf(row) / timeOf(best) - 1 <= winDifference();
  const isUnsure = ({ win_probability: p }) => typeof p === "number" && p <= 0.5 && 1 - p < minCertainty();
  const front = best ? rows.filter((row) => ran(row) && (row === best || isNear(row) || isUnsure(row))) : [];
  return rows.map((row) => {
    if (row.verdict !== undefined) {
      return row.verdict;
    }
    if (!best || !ran(row)) {
      return null;
    }
    return !front.includes(row) ? "loses" : front.length === 1 ? "wins" : "ties";
  });
}

/// Schedules without overlap; decoding has two of them.
const WITHOUT_OVERLAP = ["serial", "all_reduce"];
const isOverlap = (row) => !WITHOUT_OVERLAP.includes(row.strategy) && !overlapsNothing(row);
const baselineOf = (rows) =>
  rows.filter((row) => WITHOUT_OVERLAP.includes(row.strategy) && ran(row)).sort((a, b) => timeOf(a) - timeOf(b))[0] ?? null;

/// Returns whether overlap pays, compared with the fastest schedule without it: "pays", "loses" or "unclear"; "alone"
/// if there is nothing to compare.
function payOf(rows) {
  const recommendation = recommendationOf(rows);
  if (recommendation) {
    return recommendation.pay;
  }
  const best = fastestOf(rows);
  const base = baselineOf(rows);
  if (!base || !rows.some((row) => ran(row) && !isBound(row) && isOverlap(row))) {
    return "alone";
  }
  const verdicts = verdictsOf(rows);
  const front = rows
    .filter((_, i) => verdicts[i] === "wins" || verdicts[i] === "ties")
    .map((row) => WITHOUT_OVERLAP.includes(row.strategy));
  return WITHOUT_OVERLAP.includes(best.strategy) && front.every(Boolean) ? "loses" : front.some(Boolean) ? "unclear" : "pays";
}

function headlineOf(rows) {
  const recommendation = recommendationOf(rows);
  if (recommendation) {
    return recommendationHeadline(recommendation);
  }
  const best = fastestOf(rows);
  const base = baselineOf(rows);
  if (!best) {
    return "No schedule runs at this point.";
  }
  const less = base ? percent(1 - timeOf(best) / timeOf(base)) : "";
  const p = typeof base?.win_probability === "number" ? base.win_probability : null;
  const wins = verdictsOf(rows)[rows.indexOf(best)] === "wins";
  const pay = payOf(rows);
  if (pay === "pays") {
    const surely = p === null ? "" : ` (${sure(1 - p)} to beat ${base.strategy})`;
    return `With ideal kernels overlap pays: ${wins ? `${best.strategy} takes ` : ""}${less} less time than ${base.strategy}${surely}.`;
  }
  if (pay === "loses") {
    const surely = p === null ? "" : ` (${sure(p)} that it is the fastest)`;
    return `Even with ideal kernels overlap does not pay: ${base.strategy} ${wins ? "wins" : "is the fastest"}${surely}.`;
  }
  if (pay === "unclear") {
    const doubt = p !== null && 1 - p < minCertainty() ? ` (only ${sure(1 - p)} to beat ${base.strategy})` : tieWords();
    return best === base
      ? `With ideal kernels it is too close to call: ${base.strategy} is among the fastest.`
      : `With ideal kernels it is too close to call: ${best.strategy} takes ${less} less time than ${base.strategy}${doubt}.`;
  }
  const time = timeUnit(timeOf(best)).text(timeOf(best));
  const withIdeals = isImplementation(best) ? "" : "With ideal kernels ";
  return rows.filter(ran).length === 1 ? `Only ${best.strategy} runs here, in ${time}.` : `${withIdeals}${best.strategy} is the fastest, in ${time}.`;
}

/// Returns the sentence below the headline. The engine's verdict says which schedule wins, so after a headline about
/// overlap it answers another question.
function secondOf(verdict, rows) {
  const recommendation = recommendationOf(rows);
  if (recommendation) {
    return recommendationSecond(recommendation, rows);
  }
  const words = verdict
    .replace(/ (fused_kernel) \([^)]*\) takes ([\d.]+%) less than (\S+)\.$/, " A lower bound that no implementation reaches takes $2 less time than $3.")
    .replace(/^\S+ takes [\d.]+ us\.$/, "") // the headline says this
    .replace(/^(\S+) wins \(([^)]*)\)/, "$1 ($2)");
  const answer = words === "" || payOf(rows) === "alone" ? words : `Which schedule? ${words}`;
  return idealsOnly(rows) + answer;
}

const SCOPE_WORDS = {
  mlp: "the MLP",
  layer: "a whole layer",
  attention: "the attention block",
  step: "a training step of the whole model",
  prefill: "the prompts of a whole model",
  decode: "one token of a whole model",
};
const scopeWords = (scope) => `, for ${SCOPE_WORDS[scope] ?? scope.replaceAll("_", " ")}`;

const PROVENANCES = { prior: "assumed", published: "published", fitted: "fitted", measured: "measured" };

const OUT_OF_MEMORY = /^out of memory: /;

/// Returns each of the engine's warnings once. Omits the last warning of a row with `unmeasured_on`, because
/// beyondSentence() states it for all rows together.
function warningsOf(rows) {
  const warnings = rows.flatMap((row) => (row.warnings ? String(row.warnings).split("; ").slice(0, row.unmeasured_on ? -1 : undefined) : []));
  return [...new Set(warnings)];
}

/// Returns a sentence about schedules that do not fit into the GPUs' memory, or "".
function unfitSentence(rows) {
  const message = warningsOf(rows).find((warning) => OUT_OF_MEMORY.test(warning));
  const unfit = rows.filter((row) => row.fits === false);
  const fitting = rows.filter((row) => ran(row) && row.fits !== false);
  const need = Math.max(...unfit.map((row) => row.memory_gb ?? row.weights_gb + row.cache_gb), 0);
  const size = unfit[0]?.capacity_gb ? `needs ${need.toFixed(1)}${NARROW}GB and has ${unfit[0].capacity_gb.toFixed(1)}${NARROW}GB` : "does not hold this model";
  const which = fitting.length > 0 ? ` (${listed(unfit.map((row) => row.strategy))})` : "";
  return message ? `${message.replace(OUT_OF_MEMORY, "This does not fit in memory: ")}.` : unfit.length > 0 ? `This does not fit in memory${which}: the fullest GPU ${size}.` : "";
}

/// Returns a setting of the point on the screen, which may be older than the controls.
const shownSetting = (key) => live.settings[key] ?? state.presets[key] ?? "";

function showVerdict(answer, rows) {
  const headline = headlineOf(rows);
  const best = bestOf(rows);
  const error = best && errorOf(best);
  const kinds = best?.leans_on?.split("+").map((kind) => PROVENANCES[kind] ?? kind);
  const unit = best && timeUnit(timeOf(best));
  const point = `${shownPath(shownSetting("model"))} ${shownSetting("scope")} on ${shownSetting("ranks")} \u00d7 ${shownPath(shownSetting("hardware"))}`;
  const time = best && `${unit.text(timeOf(best))}${error === null ? "" : ` \u00b1${percent(error)}`}, MFU ${percent(best.mfu ?? 0)}`;
  const sources = kinds ? ` The time depends on ${listed(kinds)} parameters of the machine.` : "";
  put("headline", headline.replace(/\.$/, `${scopeWords(shownSetting("scope"))}.`));
  put("second", secondOf(answer.verdict ?? "", rows));
  put("size", best ? `${point}, ${count(shownSetting("seq"))} tokens: ${best.strategy} takes ${time}.${sources}` : "");
  const warnings = warningsOf(rows).filter((warning) => !OUT_OF_MEMORY.test(warning));
  put("unfit", unfitSentence(rows));
  $("unfit").hidden = $("unfit").textContent === "";
  $("verdict").classList.toggle("real", withImplementations(rows));
  put("beyond", beyondSentence(rows));
  $("beyond").hidden = $("beyond").textContent === "";
  $("warnings").hidden = warnings.length === 0;
  $("warnings").replaceChildren(...warnings.slice(0, 5).map((text) => element("li", {}, text)));
}

const LAYER_PARTS = [
  ["compute", "essential"],
  ["slicing", "slicing"],
  ["stretch", "stretch"],
  ["local", "local"],
];
const STEP_PARTS = [
  ["compute", "essential"],
  ["waiting", "exposed"],
  ["gradients", "communication"],
  ["optimizer", "local"],
];

/// Returns the legend of the bars of whole models: the parts of a training step, or only times.
function stepLegend(rows) {
  const known = STEP_PARTS.filter(([name]) => rows.some((row) => row[`${name}_ms`] !== undefined));
  return known.length > 0
    ? known.map(([name, look]) => [look === "exposed" ? "exposed hatched" : look, name])
    : [["essential", "time; only training steps and parts of a layer show its parts"]];
}

/// Returns [name, look, microseconds] for the parts of a row. Exposed time is split into head, bubble and tail if the
/// row's timeline shows them.
function partsOf(row, timeline) {
  if (row.makespan_us === undefined) {
    return STEP_PARTS.filter(([name]) => row[`${name}_ms`] !== undefined).map(([name, look]) => [name, look, row[`${name}_ms`] * 1000]);
  }
  const parts = LAYER_PARTS.map(([name, look]) => [name, look, row[`${name}_us`]]);
  const exposed = timeline && exposedParts(timeline);
  const agrees = exposed && Math.abs(exposed.head + exposed.bubble + exposed.tail - row.exposed_us) < 0.001 * row.makespan_us;
  const rest = agrees ? ["head", "bubble", "tail"].map((name) => [name, name, exposed[name]]) : [["exposed", "exposed", row.exposed_us]];
  return [...parts, ...rest];
}

class Results {
  constructor() {
    this.bars = $("bars");
    this.bars.after((this.legend = element("div")));
    $("table").replaceChildren(scrollRegion("All numbers"));
    this.region = $("table").querySelector(".scroll");
    this.folded = narrow(); // true: the ideal schedules next to implementations are folded
  }

  /// Returns the button that shows or hides ideal schedules, which a phone folds away.
  folder(number) {
    const turn = () => {
      this.folded = !this.folded;
      this.show(...this.shown);
      this.bars.querySelector(".group button")?.focus();
    };
    return element(
      "button",
      { type: "button", "aria-expanded": String(!this.folded), onclick: turn },
      this.folded ? `Show ${number} ideal schedules` : "Hide",
    );
  }

  show(rows, timelines, labels) {
    this.shown = [rows, timelines, labels];
    const shown = rows.filter(ran);
    const longest = Math.max(...shown.map(timeOf), 0);
    const serial = baselineOf(rows) ?? shown[0];
    const best = bestOf(rows);
    const end = Math.min(longest, Math.max(timeOf(serial ?? {}) ?? 0, best ? timeOf(best) : 0) * 1.9) || 1;
    const unit = timeUnit(longest);
    const parts = rows.map((row, i) =>
      ran(row)
        ? partsOf(
            row,
            timelines.find((timeline) => timeline.row === i),
          )
        : [],
    );
    const barAt = (i) => this.barOf(rows[i], parts[i], end, unit, rows[i] === best, labels[i], isIdeal(rows[i], rows));
    const groups = groupsOf(rows);
    this.bars.replaceChildren(
      ...groups.flatMap(([name, numbers], i) => [
        name && element("h3", { class: "group" }, name, i > 0 ? this.folder(numbers.length) : null),
        ...(i > 0 && this.folded ? [] : numbers.flatMap(barAt)),
      ]).filter(Boolean),
    );
    const layer = rows[0]?.makespan_us !== undefined;
    this.legend.replaceChildren(
      legendOf(
        layer
          ? [
              ["essential", "compute"],
              ["slicing", "slicing: what cutting costs"],
              ["stretch", "stretch: interference"],
              ["local", "local: adds, copies"],
              ["exposed hatched", "exposed: head (before the first work), bubble (between), tail (after the last)"],
            ]
          : stepLegend(rows),
      ),
    );
    this.table(rows, serial, best, unit, layer, labels);
  }

  barOf(row, parts, end, unit, isBest, label, ideal) {
    const bar = element("div", { class: ideal ? "bar ideal" : "bar", role: "img" });
    if (!ran(row)) {
      return [element("span", {}, label), element("span", { class: "quiet wide" }, row.reason ?? "cannot be run")];
    }
    const partWords = parts
      .filter(([, , us]) => Math.abs(us) > 0.0005 * timeOf(row))
      .map(([name, , us]) => `${name} ${unit.text(us)}`)
      .join(", ");
    bar.setAttribute("aria-label", `${label}: ${unit.text(timeOf(row))}${partWords ? `, of which ${partWords}` : ""}`);
    bar.title = partWords;
    let space = 100; // A bar that is longer than the axis ends at the edge.
    bar.classList.toggle("cut", timeOf(row) > end * 1.001);
    for (const [name, look, us] of parts.length > 0 ? parts : [["time", "essential", timeOf(row)]]) {
      const wide = Math.min(Math.max((us / end) * 97, 0), space);
      space -= wide;
      if (wide > 0) {
        const piece = element("span", { class: ["head", "bubble", "tail", "exposed"].includes(look) ? `hatched c-${look}` : `c-${look}` });
        piece.dataset.part = name;
        piece.style.width = `${wide}%`;
        bar.append(piece);
      }
    }
    const best = isBest ? "best" : ideal ? "quiet" : "";
    return [
      element("span", { class: best }, hinted(label, wordsOf(row, label))),
      ...(matchMedia("(max-width: 700px)").matches
        ? [element("span", { class: `time ${best}` }, unit.text(timeOf(row))), bar]
        : [bar, element("span", { class: `time ${best}` }, unit.text(timeOf(row)))]),
    ];
  }

  columns(serial, unit, layer) {
    const time = (name, key) => ({
      name,
      unit: unit.name,
      of: (row) => (row[key] === undefined || row[key] === null ? null : unit.digits(row[key])),
    });
    const milliseconds = (name, key) => ({
      name,
      unit: unit.name,
      of: (row) => (row[key] === undefined || row[key] === null ? null : unit.digits(row[key] * 1000)),
    });
    const common = [
      { name: "Time", unit: unit.name, of: (row) => unit.digits(timeOf(row)) },
      { name: "\u00b1", unit: "1 std. error", of: (row) => errorOf(row) !== null && percent(errorOf(row)) },
      {
        name: `vs ${serial?.strategy ?? "serial"}`,
        unit: "time",
        words: WORDS["vs serial"],
        of: (row) => row !== serial && signedPercent(timeOf(row) / timeOf(serial) - 1),
      },
      withImplementations(live.rows)
        ? { name: "Beats serial", unit: "probability", of: (row) => typeof row.beats_serial === "number" && chanceText(row.beats_serial) }
        : {
            name: "Fastest",
            unit: "vs the next",
            of: (row) => !isBound(row) && typeof row.win_probability === "number" && chanceText(row.win_probability),
          },
    ];
    const mfu = { name: "MFU", unit: "", of: (row) => typeof row.mfu === "number" && percent(row.mfu) };
    if (!layer) {
      return [
        ...common,
        mfu,
        { name: "Tokens", unit: "per second", of: (row) => row.tokens_per_second && grouped(Math.round(row.tokens_per_second)) },
        ...STEP_PARTS.map(([name]) => milliseconds(name[0].toUpperCase() + name.slice(1), `${name}_ms`)),
        { name: "Memory", unit: "GB, fullest GPU", of: (row) => typeof row.memory_gb === "number" && row.memory_gb.toFixed(1) },
      ].filter((column) => live.rows.some((row) => column.of(row)));
    }
    return [
      ...common,
      {
        name: "p99",
        unit: `${unit.name}, jitter`,
        of: (row) => {
          const p99 = live.p99.get(idOf(row));
          return p99 ? unit.digits(p99) : row.p99_us ? unit.digits(row.p99_us) : null;
        },
      },
      mfu,
      ...["exposed", "head", "bubble", "tail", "compute", "slicing", "stretch", "local"].map((name) =>
        time(name[0].toUpperCase() + name.slice(1), `${name}_us`),
      ),
      { name: "Memory", unit: "per rank", of: (row) => row.buffer_bytes && bytesText(row.buffer_bytes) },
    ];
  }

  table(rows, serial, best, unit, layer, labels) {
    const columns = this.columns(serial, unit, layer);
    const head = element(
      "tr",
      {},
      element("th", { scope: "col" }, "Schedule"),
      ...columns.map(({ name, unit, words = WORDS[name] }) =>
        element(
          "th",
          { scope: "col" },
          words ? hinted(name, words) : name,
          element("span", { class: "unit" }, unit || "\u00a0"),
        ),
      ),
    );
    const line = (row, i) =>
      element(
        "tr",
        { class: row === best ? "fastest" : isIdeal(row, rows) ? "quiet" : null },
        element("th", { scope: "row" }, labels[i].split(" (")[0]),
        ...columns.map((column) => element("td", {}, (ran(row) && column.of(row)) || "\u2013")),
      );
    const bodies = groupsOf(rows).map(([name, numbers], i) =>
      element(
        "tbody",
        { hidden: i > 0 && this.folded },
        name &&
          element("tr", { class: "group over" }, element("th", { scope: "rowgroup" }, name), element("td", { colspan: columns.length })),
        ...numbers.map((at) => line(rows[at], at)),
      ),
    );
    this.region.replaceChildren(element("table", {}, element("thead", {}, head), ...bodies));
  }
}
