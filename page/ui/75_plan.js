// SPDX-License-Identifier: Apache-2.0
// The training run: GPUs, days and money. It has a worker of its own, which is restarted when the user cancels.

const PLAN_FIELDS = [
  ["tokens", "Tokens to train on", "as in 2T"],
  ["gpus", "Kind of GPU", "as in h100; the plan finds how many"],
  ["available", "GPUs available", "as in 1024; empty: 8,192, or one node without a network"],
  ["price", "Price of a GPU-hour", "in dollars; 2.80 is an example; enter yours"],
  ["deadline", "Deadline", "as in 90d; empty for none"],
  ["budget", "Budget", "in dollars, as in 2M; empty for none"],
];
Object.assign(CONTROL_NAMES, Object.fromEntries(PLAN_FIELDS));
const PLAN_NEEDS = { tokens: "2T", gpus: "h100", price: "2.80" };

/// Returns what is wrong with the input, in the words of the form; "" for valid input.
function planMistake(texts) {
  const missing = Object.entries(PLAN_NEEDS).filter(([key]) => texts[key] === "");
  const match = /^([\d,]+)(?![\d,])\s*(?:[x\u00d7]\s*)?(\S.*)$/i.exec(texts.gpus);
  const [number, kind] = match ? [match[1], match[2]] : [/^[\d,]+$/.exec(texts.gpus)?.[0], "h100"];
  if (missing.length === 0 && texts.deadline === "" && texts.budget === "") {
    return `${controlName("deadline")} and ${controlName("budget")} are both empty; write one, as in 90d or 2M`;
  }
  return missing.length > 0
    ? missing.map(([key, example]) => `${controlName(key)} is missing; write it, as in ${example}`).join("\n")
    : number
      ? `${controlName("gpus")}: a plan finds how many GPUs it takes; write ${kind} here, and ${number} under \u201c${controlName("available")}\u201d`
      : "";
}

class Plan {
  constructor(place) {
    this.simulator = null;
    this.inputs = new Map();
    this.button = element("button", { type: "submit", class: "main", id: "plan-run" }, "Plan the run");
    this.cancel = element("button", { type: "button", hidden: true, id: "plan-cancel", onclick: () => this.stop("Cancelled.") }, "Cancel");
    this.progress = element("progress", { "aria-label": "Planning", hidden: true });
    this.status = element("p", { class: "quiet", role: "status" }, "A plan tries thousands of layouts and takes a few seconds.");
    this.out = element("div");
    this.model = element(
      "select",
      { id: "plan-model" },
      ...[...facts.start.models.map((model) => model.name)].map((name) => element("option", { value: name }, name)),
    );
    this.model.addEventListener("change", () => {
      change({ model: this.model.value });
      this.age();
    });
    const form = element(
      "form",
      { class: "plan-form" },
      element(
        "div",
        { class: "field" },
        element("label", { for: "plan-model" }, "Model"),
        this.model,
        element("p", { class: "said" }, "the same as for one layer"),
      ),
      ...PLAN_FIELDS.map((field) => this.field(field)),
      element("div", { class: "buttons" }, this.button, this.cancel),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.run();
    });
    place.replaceChildren(element("h2", {}, "GPUs, days and money of a training run"), form, this.progress, this.status, this.out);
  }

  field([key, name, words]) {
    const kinds = key === "gpus" ? [...facts.start.clusters, ...facts.start.hardware] : [];
    const list = element("datalist", { id: "plan-kinds" }, ...kinds.map((kind) => element("option", { value: kind.name }, kind.words)));
    const box = element("input", {
      type: "text",
      id: `plan-${key}`,
      list: key === "gpus" ? list.id : null,
      autocomplete: "off",
      spellcheck: "false",
      "aria-describedby": `said-plan-${key}`,
    });
    box.addEventListener("change", () => {
      state.plan[key] = box.value.trim();
      writeHash();
      this.age();
    });
    this.inputs.set(key, box);
    return element(
      "div",
      { class: "field" },
      element("label", { for: box.id }, name),
      box,
      key === "gpus" ? list : null,
      element("p", { class: "said", id: `said-plan-${key}` }, words),
    );
  }

  show() {
    this.inputs.forEach((box, key) => (box.value = state.plan[key]));
    const now = setting("model");
    if (![...this.model.options].some((option) => option.value === now)) {
      this.model.prepend(element("option", { value: now }, shownPath(now)));
    }
    this.model.value = now;
    this.age();
  }

  settings() {
    return { model: setting("model"), ...Object.fromEntries(Object.entries(state.plan).filter(([, text]) => text !== "")) };
  }

  /// Dims the drawn plan if the form has changed since.
  age() {
    this.out.classList.toggle("stale-part", this.drawn !== undefined && this.drawn !== JSON.stringify(this.settings()));
  }

  stop(words) {
    clearInterval(this.timer);
    this.running = false;
    this.simulator?.restart("cancelled");
    this.idle(words);
  }
  idle(words) {
    clearInterval(this.timer);
    this.running = false;
    this.progress.hidden = true;
    this.cancel.hidden = true;
    this.button.disabled = false;
    this.status.textContent = words;
  }

  async run() {
    this.inputs.forEach((box, key) => (state.plan[key] = box.value.trim()));
    writeHash();
    const mistake = planMistake(state.plan);
    if (mistake) {
      this.refuse(mistake);
      return;
    }
    this.simulator ??= new Simulator();
    this.button.disabled = true;
    this.cancel.hidden = false;
    this.progress.hidden = false;
    const begun = performance.now();
    const tick = () => (this.status.textContent = `Trying layouts: ${Math.round((performance.now() - begun) / 1000)} s`);
    tick();
    this.timer = setInterval(tick, 1000);
    const settings = this.settings();
    try {
      const answer = await this.simulator.ask({ ask: "plan", settings });
      this.idle(`Planned in ${((performance.now() - begun) / 1000).toFixed(1)} s.`);
      this.draw(JSON.parse(answer.json), answer);
      this.drawn = JSON.stringify(settings);
      this.age();
    } catch (error) {
      if (error.message !== "cancelled") {
        this.idle("");
        this.refuse(error.ended ? `The simulator stopped: ${error.message}. It was restarted.` : planRefusal(error.message));
      }
    }
  }

  refuse(words) {
    this.drawn = undefined;
    this.age();
    this.out.replaceChildren(element("p", { class: "problem", role: "alert" }, words));
  }

  draw(plan, answer) {
    const currency = plan.asked.currency ?? "$";
    const runs = plan.kinds.flatMap((kind, k) =>
      kind.runs.map((run, i) => ({
        ...run,
        kind: kind.name,
        isAnswer: plan.answer === k && kind.answer === i,
        isFront: plan.pareto.some((member) => member.kind === k && member.run === i),
      })),
    );
    const best = runs.find((run) => run.isAnswer);
    const surer = best && limitsOf(plan.asked) ? surerSentence(best, runs, currency, !plan.asked.deadline_days) : "";
    const command = element(
      "pre",
      { class: "command", tabindex: "0", "aria-label": "Command line of this plan" },
      shownPath(answer.command),
    );
    const copyIt = element("button", { type: "button" }, "Copy command");
    copyIt.addEventListener("click", () => copy(command.textContent, copyIt));
    const text = String(answer.text ?? "").trim();
    this.out.replaceChildren(
      element(
        "section",
        { class: "verdict" },
        element("p", { class: "headline" }, planHeadline(best, plan, currency)),
        surer ? element("p", { class: "second surer" }, surer) : null,
        element("p", { class: "second" }, best ? planReasons(planVerdict(plan, text)) : planVerdict(plan, text).replace(/^No(?:thing keeps| option meets) the limits[^.]*\. */, "")),
        ...countedSentences(best, plan).map((words) => element("p", { class: "size counted" }, words)),
        best?.layout.tensor === 1
          ? element("p", { class: "size" }, "The chosen layout has no tensor parallelism, so overlap changes nothing here.")
          : null,
      ),
      ...(best ? [planTiles(best, plan, currency)] : []),
      ...(runs.length > 0
        ? [
            element("section", {}, element("h2", {}, "Days against money"), planChart(runs, plan, currency)),
            element("section", {}, element("h2", {}, countsTitle(plan)), planTable(runs, plan, currency)),
          ]
        : []),
      plan.what_if.length > 0 ? element("section", {}, element("h2", {}, "What if"), whatIfTable(plan, currency)) : "",
      element("section", {}, element("h2", {}, "The same on the command line"), command, copyIt),
    );
  }
}

/// Returns an amount such as "$1.28M", "$20.2k" or "$0.64": three digits, and cents below a thousand.
function money(value, currency) {
  const [size, letter] = value >= 999.5e6 ? [1e9, "B"] : value >= 999.5e3 ? [1e6, "M"] : value >= 999.5 ? [1e3, "k"] : [1, ""];
  const amount = value / size;
  return `${currency}${letter === "" || amount >= 999.5 ? amount.toFixed(letter === "" ? 2 : 0) : amount.toPrecision(3)}${letter}`;
}

/// Returns days with one decimal, or with two digits if they are few: "74.5", "0.4", "0.037".
const daysText = (days) => (days < 0.095 ? String(Number(days.toPrecision(2))) : days.toFixed(1));

/// Returns a deadline such as "90 days" or "1 day".
const deadlineText = (days) => `${Number(daysText(days))} ${Number(daysText(days)) === 1 ? "day" : "days"}`;

/// Labels an axis with round ticks: $1.50M becomes "$1.5M", $1.00M becomes "$1M", and $300k stays.
const tickMoney = (value, currency) => money(value, currency).replace(/(\.\d*?)0+(?=[kMB]?$)/, "$1").replace(/\.(?=[kMB]?$)/, "");

/// Returns the limits of a plan in words, or "".
const limitsOf = ({ deadline_days: deadline, budget }) => (deadline && budget ? "deadline and budget" : deadline ? "the deadline" : budget ? "the budget" : "");

/// Returns a headline such as "256 h100, 92% sure to meet the deadline: 74.5 days, $1.28M."
function planHeadline(best, plan, currency) {
  if (!best) {
    return /^No option meets the limits[^.]*\./.exec(plan.verdict ?? "")?.[0] ?? "No option meets the limits.";
  }
  const what = `${daysText(best.days.value)} days, ${money(best.cost.value, currency)}`;
  const name = `${grouped(best.gpus)} ${best.kind}`;
  const limits = limitsOf(plan.asked);
  return limits ? `${name}, ${chance(best.confidence)} sure to meet ${limits}: ${what}.` : `${name}: ${what}.`;
}

/// Returns the engine's verdict, with the sites of each schedule named.
function planVerdict(plan, text) {
  const sites = plan.kinds[plan.answer]?.sites ?? [];
  const sitesOf = (name) => sites.filter((site) => site.strategy === name).map((site) => site.site.replaceAll("_", " "));
  const counts = [...new Set(sites.map((site) => site.strategy))].map((name) => [name, sitesOf(name)]).sort((a, b) => b[1].length - a[1].length);
  const words = counts.map(([name, places], i) => (i === 0 ? `${name} at ${places.length} of the ${sites.length} GEMMs that meet a collective` : `${name} at ${places.length} (${listed(places)})`));
  const counted = / with \S+ at \d+ of \d+ sites(?:, \S+ at \d+)*/;
  const verdict = (plan.verdict || text).replace(counted, () => ` with ${listed(words)}`).replace(" at every site", " at every GEMM that meets a collective");
  return inTerms(verdict).replace(/(\d) %/g, "$1%");
}

/// Returns the verdict without the facts of headline and tiles: days, cost and the chance.
function planReasons(verdict) {
  return verdict
    .replace(/^Train on [\d,]+ \S+ \(([^)]*)\)(?= with)/, "Layout: $1,")
    .replace(/^Train on [\d,]+ \S+ \(([^)]*)\)/, "Layout: $1")
    .replace(/: [\d.,]+ days \([^)]*\), \S+ \([^)]*\), (\S+) (?:a|per) million tokens\./, ", for $1 per million tokens.")
    .replace(/ The chance of meeting [^;.]* is [^;]*; (\S)/, (_, first) => ` ${first.toUpperCase()}`);
}

/// Rewords a refusal for the form, whose list shows the known kinds.
const planRefusal = (sentence) =>
  withNames(sentence.replace(/^(--gpus: unknown hardware '[^']*'); known: .*$/m, "$1; choose one of this field's list, or a short name such as h100"));

/// States what is simulated, and which losses are included.
function countedSentences(best, { asked }) {
  const ideal = "Simulated with ideal kernels: the losses of implementations are not included.";
  const tokens = asked.batch * asked.seq;
  const together = tokens % 2 ** 20 === 0 ? `${tokens / 2 ** 20}M` : grouped(tokens);
  const step = `A step takes ${grouped(asked.batch)} sequences of ${count(asked.seq)} tokens (the global batch, ${together} tokens), in ${asked.dtype}.`;
  const fails = asked.failures_per_gpu_hour > 0;
  const failed = best && Number(best.failures.toPrecision(2));
  const failures = best && fails ? `about ${failed} ${failed === 1 ? "failure of a GPU" : "failures of GPUs"} (each a restart of ${grouped(asked.restart_s)}${NARROW}s, and the work since the last checkpoint again)` : "";
  const saves = best && asked.checkpoint_s > 0 && best.checkpoint_every_s ? `a checkpoint of ${grouped(asked.checkpoint_s)}${NARROW}s every ${grouped(Math.round(best.checkpoint_every_s / 60))} minutes` : "";
  const counted = [failures, saves].filter(Boolean);
  const lost = counted.length > 0 ? `Days and cost include ${listed(counted)}: ${percent(best.goodput.value)} of the time is training.` : best ? "Neither failures nor checkpoints are included." : "";
  return [`${ideal} ${step}`, lost].filter(Boolean);
}

const SURE = 0.95; // an option with a smaller chance of meeting the limits is risky

/// Returns the cheapest option whose chance is at least SURE, or with `shortest` the shortest such option; null if
/// `best` has that chance itself, or if no option has it.
function surerThan(best, runs, shortest) {
  const objective = (run) => (shortest ? run.days : run.cost).value;
  const surer = runs.filter((run) => run.confidence >= SURE).sort((a, b) => objective(a) - objective(b))[0];
  return best.confidence < SURE && surer ? surer : null;
}

function surerSentence(best, runs, currency, shortest = false) {
  const surer = surerThan(best, runs, shortest);
  if (!surer) {
    return "";
  }
  const share = best.cost.value > 0 ? surer.cost.value / best.cost.value - 1 : 0;
  const difference = percent(Math.abs(share));
  const cost = Number.parseFloat(difference) === 0 ? "the same money" : `${difference} ${share < 0 ? "less" : "more"} money`;
  const what = `${daysText(surer.days.value)} days, ${money(surer.cost.value, currency)}`;
  return `To be ${chance(surer.confidence)} sure, take ${grouped(surer.gpus)} ${surer.kind} for ${cost}: ${what}.`;
}

/// Keeps a degree and its number on one line.
const layoutText = ({ tensor, pipeline, data, context }) =>
  `TP ${tensor}, PP ${pipeline}, DP ${data}${context > 1 ? `, CP ${context}` : ""}`.replace(/P (\d)/g, "P\u00a0$1");

function planTiles(best, plan, currency) {
  const tile = (name, value, range, look = "tile") =>
    element(
      "div",
      { class: look },
      element("dt", {}, name),
      element("dd", { class: "value" }, value),
      element("dd", { class: "range" }, range),
    );
  const limits = limitsOf(plan.asked);
  const { deadline_days: deadline, budget } = plan.asked;
  const limitTexts = [deadline && deadlineText(deadline), budget && money(budget, currency)].filter(Boolean);
  const between = (interval, text) => `90% between ${text(interval.low)} and ${text(interval.high)}`;
  return element(
    "dl",
    { class: "tiles" },
    tile(
      "Days",
      daysText(best.days.value),
      between(best.days, daysText),
    ),
    tile(
      "Cost",
      money(best.cost.value, currency),
      between(best.cost, (value) => money(value, currency)),
    ),
    ...(limits
      ? [tile(`Meets ${limits}`, chance(best.confidence), `chance of at most ${limitTexts.join(" and ")}`)]
      : []),
    tile(
      "MFU",
      percent(best.mfu.value),
      between(best.mfu, (value) => percent(value)),
    ),
    tile("Memory", `${best.memory_gb.toFixed(1)}${NARROW}GB`, "of the fullest GPU"),
    tile("Layout", layoutText(best.layout), `step ${best.step_s.value.toFixed(2)}${NARROW}s`, "tile long"),
  );
}

const TICKS = [1, 1.5, 2, 3, 5, 7]; // multiples of a power of ten, for short axes

/// Returns a string such as "deadline, 90 days; budget, $2.00M".
function limitWords({ asked: { deadline_days: deadline, budget } }, currency) {
  return [deadline && `deadline, ${deadlineText(deadline)}`, budget && `budget, ${money(budget, currency)}`].filter(Boolean).join("; ");
}

/// Draws the days and cost of each run, on logarithmic axes. Dotted lines span nine of ten draws; dashed lines are
/// deadline and budget.
function planChart(runs, plan, currency) {
  const [wide, high, left, bottom] = narrow() ? [366, 300, 60, 46] : [900, 380, 76, 46]; // A phone would shrink the text of a wide chart.
  const { deadline_days: deadline, budget } = plan.asked;
  // Runs that cost nothing are at the edge of the axis.
  const range = (of, limit) => {
    const values = [...runs.flatMap((run) => [of(run).low, of(run).high]), ...(limit ? [limit] : [])].filter((value) => value);
    return values.length ? [Math.min(...values) / 1.08, Math.max(...values) * 1.08] : [0.5, 2];
  };
  const [d0, d1] = range((run) => run.days, deadline);
  const [c0, c1] = range((run) => run.cost, budget);
  const share = (value, from, to) => Math.log(Math.max(value, from) / from) / Math.log(to / from);
  const x = (days) => left + share(days, d0, d1) * (wide - left - 16);
  const y = (cost) => high - bottom - share(cost, c0, c1) * (high - bottom - 16);
  const steps = (from, to) =>
    (to / from < 8 ? TICKS : [1, 2, 5])
      .flatMap((factor) => Array.from({ length: 14 }, (_, i) => factor * 10 ** (i - 3)))
      .filter((value) => value > from && value < to)
      .sort((a, b) => a - b);
  const svg = drawing("svg", {
    class: "chart",
    viewBox: `0 0 ${wide} ${high}`,
    role: "img",
    "aria-label": `Days and cost of ${runs.length} ${runs.length === 1 ? "number" : "numbers"} of GPUs; the table below has them.`,
  });
  const line = (x1, y1, x2, y2, look) => drawing("line", { x1, y1, x2, y2, class: look });
  const label = (px, py, anchor, text, look = "") => drawing("text", { x: px, y: py, "text-anchor": anchor, class: look }, text);
  let last = -Infinity;
  const hasSpace = (at) => at - last >= 34 && ((last = at), true); // There is space for a label next to the previous one.
  steps(d0, d1).forEach((days) =>
    svg.append(
      line(x(days), 16, x(days), high - bottom, "rule"),
      hasSpace(x(days)) ? label(x(days), high - bottom + 18, "middle", String(Number(days.toPrecision(3)))) : "",
    ),
  );
  steps(c0, c1).forEach((cost) =>
    svg.append(
      line(left, y(cost), wide - 16, y(cost), "rule"),
      label(left - 8, y(cost) + 5, "end", tickMoney(cost, currency)),
    ),
  );
  svg.append(label((left + wide) / 2, high - 6, "middle", "days"), label(4, 14, "start", "cost"));
  deadline && svg.append(line(x(deadline), 16, x(deadline), high - bottom, "limit"));
  budget && svg.append(line(left, y(budget), wide - 16, y(budget), "limit"));
  for (const run of [...runs].sort((a, b) => a.isAnswer - b.isAnswer)) {
    const look = run.isAnswer ? "dot answer" : run.isFront ? "dot front" : "dot";
    if (run.isAnswer || run.isFront) {
      svg.append(
        line(x(run.days.low), y(run.cost.value), x(run.days.high), y(run.cost.value), "whisker"),
        line(x(run.days.value), y(run.cost.low), x(run.days.value), y(run.cost.high), "whisker"),
      );
    }
    svg.append(
      drawing(
        "circle",
        { cx: x(run.days.value), cy: y(run.cost.value), r: run.isAnswer ? 8 : run.isFront ? 6 : 4, class: look },
        drawing("title", {}, `${run.gpus} ${run.kind}: ${daysText(run.days.value)} days, ${money(run.cost.value, currency)}`),
      ),
    );
  }
  const answer = element("span", { class: "swatch" });
  answer.style.background = "var(--exposed)";
  const front = element("span", { class: "swatch c-essential" });
  const other = element("span", { class: "swatch" });
  other.style.background = "var(--muted)";
  return element(
    "div",
    {},
    svg,
    element(
      "ul",
      { class: "legend" },
      runs.some((run) => run.isAnswer) ? element("li", {}, answer, "the answer") : null,
      element("li", {}, front, "no other run is both shorter and cheaper"),
      element("li", {}, other, "other numbers of GPUs"),
      element("li", {}, "dotted: 90% of the draws"),
      ...(deadline || budget ? [element("li", {}, element("span", { class: "swatch limit" }), limitWords(plan, currency))] : []),
    ),
  );
}

const countsTitle = ({ kinds }) => (kinds.every((kind) => kind.count) ? "The number of GPUs" : "Every number of GPUs");

function planTable(runs, plan, currency) {
  const head = element(
    "tr",
    {},
    ...["GPUs", "Kind", "Days", "Cost", "Days, 90% between", "Layout", "MFU", "Memory"].map((title) => element("th", { scope: "col" }, title)),
  );
  const isBeaten = (run) => !run.isAnswer && !run.isFront;
  const beaten = runs.filter(isBeaten).length;
  const body = runs.map((run) =>
    element(
      "tr",
      { class: run.isAnswer ? "fastest" : isBeaten(run) ? "beaten" : null, hidden: isBeaten(run) },
      element("th", { scope: "row" }, grouped(run.gpus)),
      element("td", {}, run.kind),
      element("td", {}, daysText(run.days.value)),
      element("td", {}, money(run.cost.value, currency)),
      element("td", {}, `${daysText(run.days.low)} to ${daysText(run.days.high)}`),
      element("td", {}, layoutText(run.layout)),
      element("td", {}, percent(run.mfu.value)),
      element("td", {}, `${run.memory_gb.toFixed(1)}${NARROW}GB`),
    ),
  );
  const showAll = element("button", { type: "button", hidden: beaten === 0 }, `Show all ${runs.length}`);
  showAll.addEventListener("click", () => {
    body.forEach((row) => (row.hidden = false));
    showAll.parentElement.hidden = true;
  });
  return element(
    "div",
    {},
    scrollRegion(countsTitle(plan), element("table", {}, element("thead", {}, head), element("tbody", {}, ...body))),
    element("p", { class: "note", hidden: beaten === 0 }, "Not shown: numbers of GPUs that another number beats in both days and cost. ", showAll),
  );
}

/// "price -20 %" becomes "price \u221220%", "links x0.5" becomes "links \u00d70.5".
const changeText = ({ change }) => change.replace(/(\d) %/g, "$1%").replace(/(^| )-(?=\d)/g, `$1${MINUS}`).replace(/\bx(?=\d)/g, "\u00d7");

function whatIfTable(plan, currency) {
  const head = element("tr", {}, ...["Change", "Days", "Cost", "Days vs plan"].map((title) => element("th", { scope: "col" }, title)));
  const usual = plan.answer === null || plan.answer < 0 ? null : plan.kinds[plan.answer];
  const cost = usual?.runs[usual.answer]?.cost.value;
  // The table shows only factors of two.
  const isBetween = ({ change }) => /^(links|network) x(0\.75|1\.5|3)$/.test(change);
  const isSame = (whatIf) =>
    Number.parseFloat(percent(Math.abs(whatIf.days_share))) === 0 && cost !== undefined && money(whatIf.cost.value, currency) === money(cost, currency);
  const changes = plan.what_if.filter((whatIf) => !isBetween(whatIf));
  const unchanged = changes.filter(isSame);
  const body = changes.filter((whatIf) => !isSame(whatIf)).map((whatIf) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, changeText(whatIf)),
      element("td", {}, daysText(whatIf.days.value)),
      element("td", {}, money(whatIf.cost.value, currency)),
      element("td", {}, Number.parseFloat(percent(Math.abs(whatIf.days_share))) === 0 ? "\u2013" : signedPercent(whatIf.days_share)),
    ),
  );
  const none = `Without effect on days and cost: ${unchanged.map(changeText).join("; ")}.`;
  return element(
    "div",
    {},
    body.length > 0 ? scrollRegion("What if", element("table", {}, element("thead", {}, head), element("tbody", {}, ...body))) : null,
    unchanged.length > 0 ? element("p", { class: "note same" }, none) : null,
  );
}
