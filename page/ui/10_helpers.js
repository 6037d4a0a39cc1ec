// SPDX-License-Identifier: Apache-2.0
// Small helpers for all parts of the page. Text is always added as text, never as markup.
"use strict";

const page = { failures: [], frames: 0, beganAt: performance.now() };
globalThis.commfusePage = page; // For tests.

const $ = (id) => document.getElementById(id);

/// Returns an element, as in element("button", {type: "button", onclick: f}, "Save"). Children are elements or strings.
function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) {
      node.addEventListener(key.slice(2), value);
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(key, value === true ? "" : value);
    }
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function drawing(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function put(id, text) {
  const node = $(id);
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

/// Announces text to screen readers.
function announce(text) {
  put("announced", text);
}

const MINUS = "\u2212";
const NARROW = "\u202f"; // between a number and its unit
const grouped = (count) => String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
const percent = (share, decimals = 1) => `${(100 * share).toFixed(decimals)}%`;
const signedPercent = (share, decimals = 1) => {
  const digits = percent(Math.abs(share), decimals);
  return Number.parseFloat(digits) === 0 ? digits : `${share < 0 ? MINUS : "+"}${digits}`; // never "-0.0%"
};

/// Writes counts as the command line does: 8192 is "8K", 1048576 is "1M", 1536 is "1536".
function count(number) {
  const value = Number(number);
  if (value >= 2 ** 20 && value % 2 ** 20 === 0) {
    return `${value / 2 ** 20}M`;
  }
  return value >= 1024 && value % 1024 === 0 ? `${value / 1024}K` : String(number);
}

/// Turns "8K" into "8192". Text that is not a count is returned unchanged.
function plainCount(text) {
  const match = /^\s*([\d.]+)\s*([KMG]?)\s*$/i.exec(String(text));
  const value = match && Number(match[1]) * { "": 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 }[match[2].toUpperCase()];
  return match && Number.isInteger(value) ? String(value) : String(text).trim();
}

/// Returns one unit for all times that are shown together: microseconds below 10 ms, milliseconds below 10 s, then
/// seconds.
function timeUnit(longestUs) {
  const [name, scale, decimals] = longestUs >= 1e7 ? ["s", 1e-6, 3] : longestUs >= 1e6 ? ["ms", 1e-3, 1] : longestUs >= 1e4 ? ["ms", 1e-3, 3] : ["\u00b5s", 1, 1];
  const digits = (us) => `${us < 0 && Number((us * scale).toFixed(decimals)) !== 0 ? MINUS : ""}${Math.abs(us * scale).toFixed(decimals)}`;
  return { name, scale, digits, text: (us) => `${digits(us)}${NARROW}${name}` };
}

function bytesText(bytes) {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)}${NARROW}GB` : `${(bytes / 1e6).toFixed(0)}${NARROW}MB`;
}

/// Writes "GEMM 4K x 7K x 8K" with exact sizes and multiplication signs.
const shapeText = (shape) => (shape.startsWith("GEMM ") ? shape.replace(/\b(\d+)K\b/g, (_, size) => String(size * 1024)) : shape).replaceAll(" x ", " \u00d7 ");

/// Returns a string such as "a, b and c".
function listed(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

const CERTAIN = 0.995; // The engine says "over 99%" from here on.

/// Returns a probability in the words that the engine uses.
function sure(probability) {
  return `${chance(probability)} sure`;
}

/// Returns a probability for a cell of a table.
const chanceText = (probability, over = "> ", below = "< ") =>
  probability >= CERTAIN ? `${over}99%` : probability <= 1 - CERTAIN ? `${below}1%` : percent(probability, 0);

/// Returns a chance such as "92%", and never a certainty that 2,000 draws cannot show.
const chance = (probability) => chanceText(probability, "over ", "below ");

const darkness = matchMedia("(prefers-color-scheme: dark)");
const COLOURS = [
  "ground",
  "ink",
  "quiet",
  "rule",
  "panel",
  "grid",
  "axis",
  "muted",
  "essential",
  "local",
  "communication",
  "exposed",
  "on-essential",
  "on-local",
  "on-communication",
  "link",
];

function palette() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const box = element("textarea", { class: "unseen", "aria-hidden": "true" });
    box.value = text;
    document.body.append(box);
    box.select();
    document.execCommand("copy"); // Pages opened from disk may have no clipboard.
    box.remove();
    // The box had the focus.
    button.focus();
  }
  const before = button.dataset.name ?? (button.dataset.name = button.textContent);
  button.textContent = "Copied";
  announce("Copied");
  setTimeout(() => (button.textContent = before), 1500);
}

/// Returns a function that requests `call`, which runs once `milliseconds` have passed without another request.
function afterRest(milliseconds, call) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(call, milliseconds);
  };
}

const rest = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/// Returns a region that scrolls a table wider than itself: its edge fades, a line says that there is more, and names
/// stay visible.
function scrollRegion(name, ...children) {
  const region = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, ...children);
  const more = element("p", { class: "more-columns", "aria-hidden": "true", hidden: true }, "More columns to the right: swipe or scroll \u2192");
  const update = () => {
    const hiddenWidth = region.scrollWidth - region.clientWidth;
    more.hidden = hiddenWidth <= 2;
    region.classList.toggle("more", hiddenWidth - region.scrollLeft > 2);
    region.classList.toggle("scrolled", region.scrollLeft > 0);
  };
  region.addEventListener("scroll", update, { passive: true });
  new ResizeObserver(update).observe(region);
  return element("div", { class: "scroll-box" }, more, region);
}
