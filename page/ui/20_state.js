// SPDX-License-Identifier: Apache-2.0
// State of the page: command-line settings, the view (tab, schedules shown), and the link that contains both. README.md
// promises that later versions can read the link.

const COUNTS = new Set(["ranks", "batch", "seq", "samples", "seed"]);
/// Settings that are always in a link, so that it keeps its meaning when a later version has other presets.
const ALWAYS_IN_LINK = ["model", "hardware", "scope", "ranks", "batch", "seq", "dtype"];
/// Settings that the engine always gets, so that the command names them too.
const ALWAYS_SENT = ["model", "hardware", "scope", "ranks", "seq"];
const VIEW_KEYS = ["tab", "show", "compare", "guide"];
const PLAN_PRESETS = { tokens: "2T", gpus: "h100", price: "2.80", deadline: "90d", available: "", budget: "" };

const state = {
  presets: {}, // key: text, for every setting that the engine has
  settings: {}, // key: text
  view: {}, // tab, show, compare, guide
  plan: { ...PLAN_PRESETS },
};
page.state = state;

const normal = (key, text) => (COUNTS.has(key) ? plainCount(text) : String(text));
const setting = (key) => state.settings[key] ?? state.presets[key] ?? "";

/// Returns the settings for the engine: the required ones, and those that differ from their presets.
function engineSettings(changes = {}) {
  const settings = { ...state.settings, ...changes };
  const keys = Object.keys(state.presets).filter((key) => ALWAYS_SENT.includes(key) || (settings[key] ?? "") !== "");
  const whole = facts.start?.scopes.some((scope) => scope.whole && scope.name === (settings.scope ?? state.presets.scope));
  const chosen = keys.filter((key) => key !== "as" || !whole).map((key) => [key, settings[key] ?? state.presets[key]]);
  return Object.fromEntries(chosen.filter(([key, text]) => ALWAYS_SENT.includes(key) || text !== state.presets[key]));
}

const readable = (text) =>
  encodeURIComponent(text).replace(/%(2C|2F|3A|20)/g, (code) => ({ "%2C": ",", "%2F": "/", "%3A": ":", "%20": "+" })[code]);
const unreadable = (text) => decodeURIComponent(text.replaceAll("+", " "));

function linkHash() {
  const parts = [];
  const known = Object.keys(state.presets);
  for (const key of [...ALWAYS_IN_LINK.filter((name) => known.includes(name)), ...known.filter((name) => !ALWAYS_IN_LINK.includes(name))]) {
    if (ALWAYS_IN_LINK.includes(key) || setting(key) !== state.presets[key]) {
      parts.push([key, setting(key)]);
    }
  }
  for (const key of VIEW_KEYS) {
    if (state.view[key]) {
      parts.push([key, state.view[key]]);
    }
  }
  for (const [key, text] of Object.entries(state.plan)) {
    if ((state.view.tab === "plan" && text !== "") || text !== PLAN_PRESETS[key]) {
      parts.push([`plan.${key}`, text]);
    }
  }
  return `#${parts.map(([key, text]) => `${key}=${readable(text)}`).join("&")}`;
}

/// Returns the names in a link's view setting that this page has; "" if it has none of them.
function knownView(key, text) {
  const { strategies = [], implementations = [] } = facts.start ?? {};
  const names = [...strategies.map((strategy) => strategy.name), ...implementations.map((implementation) => AS + implementation.name)];
  const kept = text.split(",").filter((name) => names.includes(name));
  return {
    tab: () => (text === "plan" ? text : ""),
    show: () => kept.join(","),
    compare: () => (kept.length === 2 ? kept.join(",") : ""),
    guide: () => (/^[1-6]$/.test(text) ? text : ""),
  }[key]();
}

/// Returns the settings that apply before a link is read. Without a link, the page shows available implementations. A
/// link without `as` shows none, because links have always meant that.
function settingsWithout(hash) {
  const known = "as" in state.presets && facts.start?.implementations?.length > 0;
  return known && /^#?(verdict)?$/.test(hash) ? { as: "all" } : {};
}

/// Reads a link. Returns a sentence about names that this page does not have, or "".
function readHash(hash) {
  const settings = settingsWithout(hash);
  const view = {};
  const plan = { ...PLAN_PRESETS };
  const unknown = [];
  for (const part of hash.replace(/^#/, "").split("&").filter(Boolean)) {
    const at = part.indexOf("=");
    let text = "";
    try {
      text = unreadable(part.slice(at + 1));
    } catch {
      unknown.push(part);
      continue;
    }
    const key = at > 0 ? part.slice(0, at) : "";
    if (Object.keys(state.presets).includes(key)) {
      settings[key] = normal(key, text);
    } else if (VIEW_KEYS.includes(key)) {
      view[key] = knownView(key, text);
      view[key] !== text && unknown.push(part);
    } else if (key.startsWith("plan.") && Object.keys(PLAN_PRESETS).includes(key.slice(5))) {
      plan[key.slice(5)] = text;
    } else if (!["verdict", ""].includes(part)) {
      unknown.push(part);
    }
  }
  const sentences =
    unknown.length > 0 ? [`This version does not recognize ${listed(unknown.map((part) => `"${part}"`))} in the link and ignores ${unknown.length > 1 ? "them" : "it"}.`] : [];
  for (const [key, text] of Object.entries(settings)) {
    if (text.startsWith("/files/") && !kit.files.some((file) => file.value === text)) {
      sentences.push(
        `The link needs the file ${text.split("/").at(-1)}, which a link cannot carry: drop it on the page. Until then the ${key} is ${state.presets[key]}.`,
      );
      delete settings[key];
    }
  }
  Object.assign(state, { settings, view, plan });
  return sentences.join(" ");
}
