// SPDX-License-Identifier: Apache-2.0
// Connects the parts. A change requests only the newest point, and draws it in the next frame. After a rest, a second
// worker refines the point (jitter, map, comparison).

const REST = 150; // milliseconds without a change
const JITTER = { jitter: "default", samples: "400" }; // the fewest runs, in hundreds, that give p99 a range (docs/metrics.md)

const COLD = 4; // factor by which the first point, which includes the engine's start, takes longer than the next
const HEAVY = 1500; // milliseconds; a slower point is refined only if the user requests it

const live = {
  main: null, // the simulator that answers sliders
  built: null, // a promise of the page around the answers
  side: null, // the simulator that refines
  rows: null,
  answer: null,
  whole: false,
  p99: new Map(),
  whys: new Map(),
  busy: false,
  again: false,
  turn: 0, // number of changes; older answers are stale

  /// Only one request is in progress; after it, only the newest settings are sent.
  ask() {
    ++this.turn;
    this.rested();
    if (!this.main) {
      return; // startPage asks once the page exists.
    }
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    this.again = false;
    const begun = performance.now();
    this.slow = setTimeout(() => this.wait(), 600);
    const settings = engineSettings();
    Promise.all([this.main.ask({ ask: "point", settings, timelines: true }), this.built]).then(
      ([answer]) => this.take(answer, settings, performance.now() - begun),
      (error) => this.refused(error, settings),
    );
  },

  done() {
    clearTimeout(this.slow);
    $("cancel-ask")?.remove();
    this.busy = false;
    if (this.again) {
      this.ask();
    }
  },

  take(answer, settings, milliseconds) {
    page.answerMs = milliseconds / (page.drawnAt === undefined ? COLD : 1);
    this.answer = answer;
    this.rows = JSON.parse(answer.json);
    this.settings = settings;
    this.whole = this.rows[0]?.makespan_us === undefined;
    this.p99 = p99Of(this.rows);
    page.shown = JSON.stringify(settings);
    if (page.drawnAt === undefined) {
      this.takeFirst();
      return;
    }
    this.problem("");
    this.redraw();
    this.done();
  },

  /// Paints the verdict before it draws the rest.
  takeFirst() {
    showVerdict(this.answer, this.rows);
    page.verdictAt = performance.now();
    setTimeout(() => {
      this.problem("");
      this.redraw();
      page.drawnAt = performance.now();
      this.done();
    }, 20);
  },

  refused(error, settings) {
    put("headline", "This point cannot be simulated.");
    ["second", "size", "change"].forEach((id) => put(id, ""));
    this.problem(
      error.message === "cancelled"
        ? "This point was cancelled; change a setting to continue."
        : error.ended
          ? `The simulator stopped: ${error.message}. It was restarted; change a setting to continue.`
          : withNames(error.message),
      refusedKeys(error.message),
    );
    page.shown = JSON.stringify(settings);
    put("command", "");
    this.done();
  },

  /// Shows a button that cancels the current request.
  wait() {
    const button = element("button", { type: "button", onclick: () => this.main.restart("cancelled") }, "Cancel");
    $("problem").after(element("p", { id: "cancel-ask", class: "buttons", role: "status" }, "Simulating this point\u2026 ", button));
  },

  /// Shows why there is no answer, with buttons that remedy it; if the text is empty, hides both. `keys` are settings
  /// that cannot be read.
  problem(text, keys = []) {
    $("problem").hidden = !text;
    $("problem").textContent = text;
    text && $("problem").append(...(keys.length > 0 ? defaultsFor(keys) : remediesOf(text)));
    $("verdict").classList.toggle("refused", text !== "");
    document.querySelector(".results").hidden = !this.rows;
    $("pending").hidden = Boolean(this.rows);
    text && put("pending", "Nothing to show for these settings.");
    $("timelines").classList.toggle("stale-part", text !== "");
    $("bars").classList.toggle("stale-part", text !== "");
  },

  redraw() {
    const { rows, answer } = this;
    if (!rows) {
      return;
    }
    const timelines = answer.timelines ?? [];
    const labels = labelsOf(rows, timelines);
    // If the point was refused, the rows are those of an earlier point.
    const isRefused = !$("problem").hidden;
    if (!isRefused) {
      showVerdict(answer, rows);
      put("command", shownPath(answer.command ?? ""));
    }
    parts.timelines.show(timelines, rows, shownIds(rows));
    $("timelines").parentElement.classList.toggle("whole", this.whole);
    $("no-timelines").hidden = timelines.length > 0;
    put("h-time", this.whole ? "Schedules of a whole model" : "Every schedule on one time axis");
    document.documentElement.classList.toggle("whole-model", this.whole);
    $("timelines").hidden = timelines.length === 0;
    $("timelines").nextElementSibling.hidden = timelines.length === 0;
    $("chips").hidden = timelines.length === 0;
    drawChips(rows, timelines);
    describe("options", [...new Map(labels.flatMap(scheduleOptions))]);
    parts.results.show(rows, timelines, labels);
    parts.map.learn(rows, this.settings);
    if (!isRefused) {
      put("change", parts.map.change());
      parts.guide.tell(rows);
    }
    parts.why.show(rows);
    put("jitter-note", this.jitterNote());
    showControls();
  },

  /// Returns the answer of `why` for a schedule or an implementation, by its id, at the point on the screen. Requests
  /// each answer only once.
  why(id) {
    const key = `${id} ${JSON.stringify(this.settings)}`;
    const which = id.startsWith(AS) ? { implementation: id.slice(AS.length) } : { strategy: id };
    if (!this.whys.has(key)) {
      this.whys.size > 40 && this.whys.clear();
      this.side ??= new Simulator();
      const explanation = this.side.ask({ ask: "why", settings: this.settings, ...which }).then((answer) => JSON.parse(answer.json));
      explanation.catch(() => this.whys.delete(key));
      this.whys.set(key, explanation);
    }
    return this.whys.get(key);
  },

  jitterNote() {
    if (this.whole) {
      return "";
    }
    const hasJitter = (this.settings?.jitter ?? state.presets.jitter ?? "none") !== "none";
    const shared = withImplementations(this.rows)
      ? "Most of \u00b1 is shared by all ideal schedules, so a difference between two of them is surer than a time. An implementation also has an error of its own. "
      : "Most of \u00b1 is shared by all schedules, so a difference is surer than a time. ";
    if (hasJitter) {
      return `${shared}p99: 99% of runs under the chosen jitter are no slower.`;
    }
    return shared + (this.p99.size > 0
      ? `p99: 99% of runs under usual jitter are no slower (${JITTER.samples} runs, all schedules with the same draws).`
      : "p99 under jitter follows once the settings stay unchanged.");
  },

  /// Computes jitter, map and comparison of the point on the screen.
  async refine() {
    const turn = this.turn;
    const isStale = () => turn !== this.turn;
    writeHash();
    if (!this.rows || this.busy || !$("problem").hidden) {
      this.busy && setTimeout(() => !isStale() && this.refine(), 50);
      return;
    }
    announce(`${$("headline").textContent} ${withImplementations(this.rows) ? $("second").textContent : (this.answer.verdict ?? "")}`);
    this.side ??= new Simulator();
    if (this.refining) {
      // An older request is running. A short one ends by itself; a long one is not awaited.
      const before = this.refining;
      const late = setTimeout(() => this.side.restart("newer"), 1500);
      await before;
      clearTimeout(late);
      if (isStale()) {
        return;
      }
    }
    this.refining = this.refineNow(isStale).catch((error) => error.ended || page.failures.push(String(error.stack ?? error)));
    await this.refining;
    this.refining = null;
    if (!isStale()) {
      document.documentElement.dataset.refined = String(turn);
    }
  },

  /// Replaces parts that take a long time with the reason why they are missing and a button that computes them.
  later(sentence) {
    const seconds = Math.ceil((page.answerMs / 1000) * 40); // about this many points
    const { turn } = this;
    const lock = (on) => document.querySelectorAll(".later button").forEach((button) => (button.disabled = on));
    const begin = () => {
      lock(true);
      announce(LOOKING);
      this.refining = this.refineNow(() => turn !== this.turn, true)
        .catch((error) => error.ended || page.failures.push(String(error.stack ?? error)))
        .then(() => {
          this.refining = null;
          lock(false);
        });
    };
    const time = seconds < 100 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`;
    return element(
      "p",
      { class: "note later" },
      `${sentence} `,
      element("button", { type: "button", onclick: begin }, `Simulate map, comparison and p99, about ${time}`),
    );
  },

  async refineNow(isStale, wanted = page.answerMs < HEAVY) {
    const { rows } = this;
    if (!wanted) {
      put("jitter-note", "");
      parts.map.place.replaceChildren(this.later("This point takes a long time, so the map is computed only when you ask for it."));
      parts.why.out.replaceChildren(this.later("This point takes a long time, so the comparison is computed only when you ask for it."));
      parts.why.out.classList.remove("stale-part");
      await parts.map.look(this.side, isStale);
      return;
    }
    await parts.map.look(this.side, isStale);
    if (!this.whole && "jitter" in state.presets && setting("jitter") === "none") {
      await this.side.ask({ ask: "point", settings: engineSettings(JITTER), timelines: false }).then(
        (answer) => {
          if (!isStale()) {
            this.p99 = p99Of(JSON.parse(answer.json));
            parts.timelines.setP99(this.p99);
            const timelines = this.answer.timelines ?? [];
            parts.results.show(rows, timelines, labelsOf(rows, timelines));
            put("jitter-note", this.jitterNote());
          }
        },
        (error) => {
          isStale() || put("jitter-note", `p99 under jitter: ${error.message}`);
          if (error.ended) {
            throw error;
          }
        },
      );
    }
    if (!isStale()) {
      await Promise.all([parts.why.fill(), parts.map.fill(this.side, isStale)]);
    }
  },
};
page.live = live;
live.rested = afterRest(REST, () => live.refine());

const parts = { timelines: null, results: null, map: null, why: null, guide: null, plan: null };
page.parts = parts;

/// Returns the settings that a refusal names by their flags, as in "--seq: …".
const refusedKeys = (sentence) =>
  [...sentence.matchAll(/^--([\w-]+): /gm)].map(([, flag]) => flag.replaceAll("-", "_")).filter((key) => key in state.presets);

/// Returns a button that resets these settings to their defaults.
function defaultsFor(keys) {
  const defaults = Object.fromEntries(keys.map((key) => [key, state.presets[key]]));
  const words = keys.map((key) => `${controlName(key)} ${shownPath(state.presets[key])}`);
  return [
    element(
      "span",
      { class: "buttons" },
      element(
        "button",
        { type: "button", onclick: () => change(defaults) },
        `Use the default${keys.length > 1 ? "s" : ""}: ${listed(words)}`,
      ),
    ),
  ];
}

/// Returns the choices that a refusal offers, as buttons.
function remediesOf(sentence) {
  const ways = asRemedies(sentence);
  if (ways.length > 0) {
    const button = ({ words, changes }) => element("button", { type: "button", onclick: () => change(changes) }, words);
    return [element("span", { class: "buttons" }, ...ways.map(button))];
  }
  const rules = [
    ["scope", /choose scope ([\w, ]+?)(?:, which|$)/],
    ["ranks", /choose ranks (?:up to |that divide [^:]*: )([\d, ]+)$/],
    ["dtype", /choose one of ([\w, ]+)$/],
  ];
  const match = rules.map(([key, rule]) => [key, rule.exec(sentence)?.[1]]).find(([, texts]) => texts);
  if (!match) {
    return [];
  }
  const [key, texts] = match;
  const choices = texts
    .split(/, | or /)
    .filter((text) => key !== "ranks" || Number(text) > 1)
    .slice(0, 6);
  return [
    element(
      "span",
      { class: "buttons" },
      ...choices.map((text) => element("button", { type: "button", onclick: () => change({ [key]: text }) }, `${key} ${text}`)),
    ),
  ];
}

const p99Of = (rows) => new Map(rows.filter((row) => row.p99_us).map((row) => [idOf(row), row.p99_us]));

/// Returns the engine's labels of timelines, with options; a row's name if it has none.
const labelsOf = (rows, timelines) => rows.map((row, i) => timelines.find((timeline) => timeline.row === i)?.label ?? shortLabel(row, rows));

/// Returns the ids on the axis: the chosen ones, if any of them exists; null for all.
function shownIds(rows) {
  const chosen = state.view.show?.split(",").filter(Boolean) ?? [];
  return rows.some((row) => chosen.includes(idOf(row))) ? chosen : withImplementations(rows) ? usualIds(rows) : null;
}

/// Draws a button for each schedule, which shows or hides it on the axis.
function drawChips(rows, timelines) {
  const order = shownOrder(rows).filter((i) => timelines.some(({ row }) => row === i));
  const ids = order.map((i) => idOf(rows[i]));
  const shown = shownIds(rows);
  const chips = $("chips");
  const drawn = `${withImplementations(rows)} ${ids.join()}`;
  if (chips.dataset.names !== drawn) {
    chips.dataset.names = drawn;
    chips.replaceChildren(
      ...groupsOf(rows).flatMap(([name, numbers]) => [
        name && element("span", { class: "chip-group" }, name),
        ...order.filter((i) => numbers.includes(i)).map((i) => chipOf(rows[i], rows)),
      ]),
    );
  }
  for (const chip of chips.querySelectorAll("button")) {
    chip.setAttribute("aria-pressed", String(!shown || shown.includes(chip.dataset.name)));
  }
}

function chipOf(row, rows) {
  const words = isImplementation(row) ? implementationWords(row.strategy) : strategyWords(row.strategy);
  const attributes = {
    type: "button",
    class: isIdeal(row, rows) ? "quiet" : null,
    "data-name": idOf(row),
    "data-hint": words,
    "aria-description": words,
    "aria-label": isIdeal(row, rows) ? shortLabel(row, rows) : null,
    onclick: () => toggle(idOf(row)),
  };
  return element("button", attributes, row.strategy);
}

/// Shows a schedule on the axis, or hides it. The usual contents of the axis are not written into the link.
function toggle(id) {
  const ids = shownOrder(live.rows).map((i) => idOf(live.rows[i]));
  const shown = shownIds(live.rows) ?? ids;
  const next = ids.filter((other) => shown.includes(other) !== (other === id));
  const usual = withImplementations(live.rows) ? usualIds(live.rows) : ids;
  if (next.length === 0 || (next.length === usual.length && next.every((other) => usual.includes(other)))) {
    delete state.view.show;
  } else {
    state.view.show = next.join(",");
  }
  live.redraw();
  writeHash();
}

let knownHash = null; // the last hash that was read or written

function writeHash() {
  const hash = linkHash();
  if (location.hash === knownHash && hash !== knownHash) {
    // A link that has not been read yet must not be overwritten.
    history.replaceState(null, "", hash);
    knownHash = location.hash;
  }
}

function showTab() {
  const isPlan = state.view.tab === "plan";
  for (const [name, on] of [
    ["layer", !isPlan],
    ["plan", isPlan],
  ]) {
    $(`panel-${name}`).hidden = !on;
    $(`tab-${name}`).setAttribute("aria-selected", String(on));
    $(`tab-${name}`).tabIndex = on ? 0 : -1;
  }
  document.body.classList.toggle("plan-open", isPlan);
  if (isPlan) {
    parts.plan ??= new Plan($("panel-plan"));
    parts.plan.show();
  }
}

function chooseTab(name) {
  if (name === "plan") {
    state.view.tab = "plan";
  } else {
    delete state.view.tab;
  }
  showTab();
  writeHash();
  $(`tab-${name}`).focus();
}

function startTabs() {
  for (const name of ["layer", "plan"]) {
    $(`tab-${name}`).addEventListener("click", () => chooseTab(name));
    $(`tab-${name}`).addEventListener("keydown", (event) => {
      if (["ArrowLeft", "ArrowRight"].includes(event.key)) {
        event.preventDefault();
        chooseTab(name === "layer" ? "plan" : "layer");
      }
    });
  }
}

/// Passes the user's files to the engine, and shows what they are, or what is wrong with them.
async function takeFiles(files) {
  const sentences = [];
  const tell = (sentence) => showNotice((sentences.push(sentence), sentences.join("\n")));
  for (const file of files) {
    if (file.size > 4e6) {
      tell(`${file.name} has ${grouped(file.size)} bytes; a hardware YAML, model YAML or config.json has at most 4,000,000.`);
      continue;
    }
    const text = await file.text();
    if (/[\0\uFFFD]/.test(text)) {
      tell(`${file.name} is not text in UTF-8; drop a hardware YAML, a model YAML or a config.json.`);
      continue;
    }
    try {
      const { key, value } = await live.main.file(file.name, text);
      change({ [key]: value });
      parts.plan?.show();
      tell(`${file.name} is the ${key === "model" ? "model" : "GPU"} now. It stays on this page: send the file along with a link.`);
    } catch (error) {
      tell(error.ended ? `The simulator stopped at ${file.name}: ${error.message}. It was restarted.` : shownPath(error.message));
    }
  }
}

function startDrops() {
  let depth = 0;
  const show = (on) => ($("drop").hidden = !on);
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragenter", (event) => hasFiles(event) && show(++depth > 0));
  addEventListener("dragleave", (event) => hasFiles(event) && show(--depth > 0));
  addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  addEventListener("drop", (event) => {
    depth = 0;
    show(false);
    if (hasFiles(event)) {
      event.preventDefault();
      takeFiles(event.dataTransfer.files);
    }
  });
}

/// Reads a link that was opened in this page, or to which the Back button led.
function readLocation() {
  knownHash = location.hash;
  return readHash(knownHash);
}
function showLocation(notice) {
  showNotice(notice);
  showControls();
  parts.guide.show();
  showTab();
}

/// Sends the first question before the page can show its answer.
function askFirst() {
  const missing = ["Worker", "WebAssembly", "DecompressionStream"].filter((name) => !(name in globalThis));
  if (missing.length > 0) {
    throw new Error(`this browser lacks ${listed(missing)}; use Chrome 92, Firefox 113, Safari 16.4 or later`);
  }
  openKit();
  live.main = new Simulator();
  const start = JSON.parse(blockText("start")); // the engine's answer when the page was built
  facts.start = start;
  state.presets = Object.fromEntries(start.fields.map((field) => [field.key, normal(field.key, field.preset ?? "")]));
  const notice = readLocation();
  live.ask();
  return { start, notice };
}

/// Fills a list with terms and their meanings.
function describe(id, entries) {
  $(id).replaceChildren(...entries.map(([term, words]) => element("div", {}, element("dt", {}, term), element("dd", {}, words))));
}

function buildPage({ start, notice }) {
  buildControls(start);
  parts.timelines = new Timelines($("timelines"));
  parts.results = new Results();
  parts.map = new WinnersMap($("map"));
  parts.why = new Why($("why"));
  parts.guide = new Guide($("guide"));
  page.hints = new Hints($("hint"));
  describe("strategies", start.strategies.map(({ name }) => [name, strategyWords(name)]));
  describe("implementations", (start.implementations ?? []).map(({ name, words }) => [name, words]));
  describe("words", Object.entries(WORDS));
  put("version", `commfuse ${start.version}, model version ${start.model_version}.`);
  startTabs();
  document.querySelector("[data-skip]").addEventListener("click", (event) => {
    event.preventDefault(); // The fragment belongs to the state of the page.
    $("verdict").focus();
  });
  showLocation(notice);
  startDrops();
  addEventListener("hashchange", () => {
    if (location.hash !== knownHash) {
      showLocation(readLocation());
      live.ask();
    }
  });
  page.readyAt = performance.now();
  document.documentElement.dataset.page = "ready";
}

/// This script precedes the engine, so the worker starts while the engine is still loading.
async function startPage() {
  let built = null;
  live.built = new Promise((resolve) => (built = resolve));
  const first = askFirst();
  // Starting a worker needs this thread, so the controls wait for the start, but not for a slow network.
  await Promise.race([Promise.all([live.main.born, kit.engine]), rest(300)]);
  buildPage(first);
  built();
}

startPage().catch((error) => {
  page.failures.push(String(error.stack ?? error));
  put("headline", "The simulator did not start.");
  live.problem(error.message);
});
