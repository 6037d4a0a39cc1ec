// SPDX-License-Identifier: Apache-2.0
// Lists and sliders. Each shows one setting; a slider has a box for values between its steps.

const controls = new Map(); // key: {show()}
const facts = { start: null, hardware: new Map() }; // facts from the engine

const halves = (from, to) => {
  const values = [];
  for (let value = from; value <= to; value *= 2) {
    values.push(value, ...(value * 2 <= to && value >= 256 ? [value * 1.5] : []));
  }
  return values.map(String);
};
const doubles = (from, to) => halves(from, to).filter((text) => Number.isInteger(Math.log2(Number(text))));
const RATES = ["x0.1", "x0.25", "x0.5", "x0.75", "x1", "x1.25", "x1.5", "x2", "x3", "x4", "x8"];

/// Returns the number of GPUs of a machine, read from its words if the engine does not state it; 64 if neither has it.
function gpusOf(machine) {
  const match = /(?:(\d+) x )?(\d+) GPUs?/i.exec(machine?.words ?? "");
  return machine?.gpus ?? (match ? Number(match[1] ?? 1) * Number(match[2]) : 64);
}

function rankSteps() {
  const gpus = gpusOf(facts.hardware.get(setting("hardware")));
  const steps = doubles(2, 1024).filter((text) => Number(text) <= gpus);
  return steps.length > 0 ? steps : ["1"];
}

const SLIDERS = {
  seq: { name: "Tokens", steps: () => halves(64, 1048576), show: count, note: () => (/^\d+$/.test(setting("seq")) ? `${grouped(setting("seq"))} in each sequence` : "not a whole number") },
  ranks: { name: "Ranks", steps: rankSteps, show: String, note: () => "tensor-parallel GPUs" },
  batch: { name: "Batch", steps: () => doubles(1, 1024), show: String, note: () => "sequences" },
  link_bandwidth: {
    name: "Link rate",
    steps: () => RATES,
    show: (text) => text.replace(/^x/, "\u00d7"),
    note: () => rateNote("link_rate_gb_s", "inside a node"),
  },
  network_bandwidth: {
    name: "Network rate",
    steps: () => RATES,
    show: (text) => text.replace(/^x/, "\u00d7"),
    note: () => rateNote("network_rate_gb_s", "between nodes, per GPU"),
  },
};

const CONTROL_NAMES = { model: "Model", hardware: "GPU", as: "Implementations", scope: "What runs", dtype: "Element type" };
/// Returns the page's name of a setting.
const controlName = (key) => SLIDERS[key]?.name ?? CONTROL_NAMES[key] ?? key;
/// Replaces flags in a refusal by these names: "--seq: …" is "Tokens: …".
const withNames = (sentence) => shownPath(sentence).replace(/^--([\w-]+): /gm, (_, flag) => `${controlName(flag.replaceAll("-", "_"))}: `);

function rateNote(column, where) {
  const rate = live.rows?.[0]?.[column];
  if (column === "network_rate_gb_s" && live.rows && (rate === null || rate === undefined)) {
    return "not used: all ranks are in one node";
  }
  return rate ? `${Number(rate.toPrecision(4))}${NARROW}GB/s ${where}` : where;
}

const sizeOf = (text) => Number(String(text).replace(/^x/, ""));

/// Returns a slider over `steps`; a value between two steps is inserted in order.
function sliderField(key, { name, steps, show, note }) {
  const range = element("input", { type: "range", id: `in-${key}`, min: "0", step: "1" });
  const box = element("input", { type: "text", "aria-label": `${name}, exact`, autocomplete: "off", spellcheck: "false" });
  const words = element("p", { class: "said", id: `said-${key}` });
  range.setAttribute("aria-describedby", words.id);
  let shown = [];
  const typed = (text) =>
    key.endsWith("bandwidth")
      ? text
          .trim()
          .replace(/^\u00d7/, "x")
          .replace(/^([\d.]+)$/, "x$1")
      : plainCount(text);
  range.addEventListener("input", () => change({ [key]: shown[range.value] }));
  box.addEventListener("change", () => box.value.trim() && change({ [key]: typed(box.value) }));
  // An emptied box changes nothing.
  box.addEventListener("blur", () => (box.value = show(setting(key))));
  const place = element(
    "div",
    { class: "field" },
    element("label", { for: range.id }, name),
    element("div", { class: "slide" }, range, box),
    words,
  );
  const showIt = () => {
    const value = setting(key);
    shown = steps();
    if (!shown.includes(value) && Number.isFinite(sizeOf(value))) {
      shown = [...shown, value].sort((a, b) => sizeOf(a) - sizeOf(b));
    }
    range.max = String(Math.max(shown.length - 1, 0));
    range.value = String(Math.max(shown.indexOf(value), 0));
    range.setAttribute("aria-valuetext", show(value));
    if (document.activeElement !== box) {
      box.value = show(value);
    }
    words.textContent = note();
  };
  controls.set(key, { place, show: showIt });
  return place;
}

function optionsOf(list, whole = (entry) => entry.name) {
  return list.map((entry) => element("option", { value: entry.name }, whole(entry)));
}

function listField(key, name, groups, more = null) {
  const select = element("select", { id: `in-${key}` });
  const words = element("p", { class: "said", id: `said-${key}` });
  select.setAttribute("aria-describedby", words.id);
  select.addEventListener("change", () => change({ [key]: select.value }));
  const place = element("div", { class: "field" }, element("label", { for: select.id }, name), select, words, more);
  const known = new Map(groups.flatMap(([, list]) => list.map((entry) => [entry.name, entry])));
  const ownFiles = () =>
    kit.files.filter((file) => file.key === key).map((file) => ({ name: file.value, words: "your own file, only on this page" }));
  const fill = () => {
    const mine = ownFiles();
    mine.forEach((file) => known.set(file.name, file));
    if (!known.has(setting(key))) {
      mine.push({ name: setting(key), words: "from the link" });
    }
    const allGroups = mine.length > 0 ? [["Your own", mine], ...groups] : groups;
    select.replaceChildren(
      ...(allGroups.length === 1
        ? optionsOf(allGroups[0][1])
        : allGroups.map(([label, list]) => element("optgroup", { label }, ...optionsOf(list, (entry) => entry.title ?? shownPath(entry.name))))),
    );
    select.dataset.filled = JSON.stringify(mine.map((file) => file.name));
  };
  const showIt = () => {
    const value = setting(key);
    if (
      select.dataset.filled === undefined ||
      ![...select.options].some((option) => option.value === value) ||
      ownFiles().some((file) => !select.dataset.filled.includes(file.name))
    ) {
      fill();
    }
    select.value = value;
    words.textContent = (known.get(value)?.words ?? "").replace(/^(\S+) parameters, \1 active/, "$1 parameters");
  };
  controls.set(key, { place, show: showIt });
  return place;
}

/// Returns a field for a setting without a control of its own: a list if it has choices, else a box for text.
function otherField({ key, words, preset, choices }) {
  const id = `in-${key}`;
  const name = key.replaceAll("_", " ").replaceAll(".", ": ");
  const box = choices
    ? element(
        "select",
        { id },
        ...[...new Set([preset, ...choices])].map((choice) => element("option", { value: choice }, choice === "" ? "default" : choice)),
      )
    : element("input", { id, type: "text", placeholder: preset, autocomplete: "off", spellcheck: "false" });
  const note = element("p", { class: "said", id: `said-${key}` }, words === key ? "" : words);
  box.setAttribute("aria-describedby", note.id);
  box.addEventListener("change", () => change({ [key]: normal(key, box.value.trim() || preset) }));
  const showIt = () => {
    if (choices || document.activeElement !== box) {
      box.value = choices || setting(key) !== preset ? setting(key) : "";
    }
  };
  box.addEventListener("blur", showIt);
  controls.set(key, { show: showIt });
  return element("div", { class: "field" }, element("label", { for: id }, name), box, note);
}

/// Returns the buttons that share the verdict: as a link and as a command.
function shareButtons(command) {
  const link = element("button", { type: "button", id: "copy-link" }, "Copy link");
  const line = element("button", { type: "button", class: "copy-line" }, "Copy command");
  line.addEventListener("click", () => copy(command.textContent, line));
  link.addEventListener("click", () => {
    writeHash();
    copy(location.href, link);
    if (location.protocol === "file:") {
      showNotice("The link points to a file on this computer: send the file as well, and open it with the part after the #.");
    }
  });
  return [link, line];
}

function shareField() {
  const command = element("pre", { class: "command", id: "command", tabindex: "0", "aria-label": "Command line of this point" });
  const copyCommand = element("button", { type: "button", id: "copy-command" }, "Copy command");
  copyCommand.addEventListener("click", () => copy(command.textContent, copyCommand));
  $("share").replaceChildren(...shareButtons(command));
  return element(
    "div",
    { class: "field wide" },
    element("p", { class: "label" }, "The same on the command line"),
    command,
    element("div", { class: "buttons" }, copyCommand),
  );
}

function buildControls(start) {
  [...start.hardware, ...start.clusters].forEach((machine) => facts.hardware.set(machine.name, machine));
  const fields = new Map(start.fields.map((field) => [field.key, field]));
  const parts = start.scopes.filter((scope) => !scope.whole);
  const ownFile = element("button", { type: "button", id: "own-file" }, "Your own model or GPU\u2026");
  const picker = element("input", {
    type: "file",
    accept: ".yaml,.yml,.json",
    class: "unseen",
    tabindex: "-1",
    "aria-label": "A hardware YAML, model YAML or config.json",
  });
  ownFile.addEventListener("click", () => picker.click());
  picker.addEventListener("change", () => {
    takeFiles(picker.files);
    picker.value = "";
  });
  const quick = element("div", { class: "quick wide" }, sliderField("seq", SLIDERS.seq), sliderField("ranks", SLIDERS.ranks));
  const otherFields = start.fields.filter(({ key }) => ![...ALWAYS_IN_LINK, "as", "link_bandwidth", "network_bandwidth", "threads"].includes(key));
  const dtypes = fields.get("dtype")?.choices ?? ["bf16", "fp16", "fp32", "fp8"];
  $("controls").replaceChildren(
    listField("model", "Model", [["Models", start.models]]),
    listField("hardware", "GPU", [
      ["One node", start.hardware.filter(({ name }) => !isOfSoftware(name))],
      ["One node, with the kernels of vLLM, SGLang or PyTorch", start.hardware.filter(({ name }) => isOfSoftware(name))],
      ["Clusters", start.clusters],
    ]),
    element("div", { class: "field wide" }, ownFile, picker),
    asField(start),
    quick,
    restOf(start, parts, dtypes, otherFields),
  );
  controls.forEach(({ place }, key) => key in state.presets || (place && (place.hidden = true)));
}

const isOfSoftware = (name) => /-(vllm|sglang|torch)$/.test(name);
const isBackward = (name) => name.endsWith("_backward");
const isSharded = (name) => name.startsWith("fsdp") || name === "data_parallel";
const SCOPE_GROUPS = [
  ["A layer and its parts", (name) => !isBackward(name) && !isSharded(name)],
  ["Backward", isBackward],
  ["Data parallel", isSharded],
];

/// Some forty fields that few users open. They are created when they are opened.
function moreSettings(fields) {
  const more = element("details", { class: "wide", id: "more-settings" }, element("summary", {}, "More settings"));
  const fill = () => {
    more.append(...fields.map(otherField));
    showControls();
  };
  more.addEventListener("toggle", fill, { once: true });
  return more;
}

/// Returns the controls that a phone folds away, so that the timelines are near the top.
function restOf(start, parts, dtypes, otherFields) {
  const phone = matchMedia("(max-width: 700px)");
  const body = element(
    "div",
    { class: "rest-body" },
    listField("scope", "What runs", [
      ...SCOPE_GROUPS.map(([name, belongs]) => [name, parts.filter((scope) => belongs(scope.name))]).filter(([, list]) => list.length > 0),
      ["Whole model", start.scopes.filter((scope) => scope.whole)],
    ]),
    sliderField("batch", SLIDERS.batch),
    sliderField("link_bandwidth", SLIDERS.link_bandwidth),
    sliderField("network_bandwidth", SLIDERS.network_bandwidth),
    listField("dtype", "Element type", [["Types", dtypes.map((name) => ({ name, words: "" }))]]),
    moreSettings(otherFields),
    shareField(),
  );
  const rest = element(
    "details",
    { class: "rest wide", open: !phone.matches },
    element("summary", {}, "What runs, batch, rates, command line"),
    body,
  );
  phone.addEventListener("change", () => (rest.open ||= !phone.matches)); // A wide page has no summary to open.
  return rest;
}

function showControls() {
  controls.forEach(({ show }, key) => key in state.presets && show());
  const network = $("in-network_bandwidth");
  if (network && live.rows) {
    const unused = (live.rows[0]?.network_rate_gb_s ?? null) === null && setting("network_bandwidth") === state.presets.network_bandwidth;
    network.disabled = unused;
  }
}

/// Applies a change by the user. If a new machine has fewer GPUs than ranks, the ranks become the largest power of two
/// that is at most its number of GPUs. The engine checks the ranks on a machine from the user's own file.
function change(changes) {
  const settings = { ...state.settings, ...changes };
  let notice = "";
  const machine = facts.hardware.get(changes.hardware);
  if (machine && changes.ranks === undefined) {
    const gpus = gpusOf(machine);
    if (Number(setting("ranks")) > gpus) {
      settings.ranks = String(2 ** Math.floor(Math.log2(gpus)));
      notice = `${changes.hardware} has ${gpus} GPUs, so the ranks are ${settings.ranks} now.`;
    }
  }
  state.settings = settings;
  showNotice(notice);
  showControls();
  live.ask();
}

function showNotice(text) {
  $("notice").hidden = !text;
  put("notice", text);
}
