// SPDX-License-Identifier: Apache-2.0
// Common parts of the page: unpacking its data, and small helpers. The page's data are blocks of base64 gzip, so no
// text can end a script. Text is inserted as text, never as markup.
"use strict";

const report = {
  figures: new Map(), // id: the figure as reports/figure/figure_json.cpp writes it
  charts: new Map(), // id: the object that drew it
  timelines: [],
  table: null,
  failures: [],
};
globalThis.commfuseReport = report;

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) {
    return Uint8Array.fromBase64(text);
  }
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) {
    bytes[i] = binary.charCodeAt(i);
  }
  return bytes;
}

/// Returns the bytes of a block; null if the page has no block of that name.
async function blockBytes(name) {
  const element = document.getElementById(`block-${name}`);
  if (!element || !element.textContent.trim()) {
    return null;
  }
  const packed = bytesOfBase64(element.textContent.trim());
  element.textContent = ""; // It is large and no longer needed.
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function blockText(name) {
  const bytes = await blockBytes(name);
  return bytes && new TextDecoder().decode(bytes);
}

const columnTypes = { f64: Float64Array, u32: Uint32Array, u16: Uint16Array, u8: Uint8Array };

/// Reads a block of columns: the length of a JSON head, the head, and the columns, each at a multiple of eight bytes.
async function blockColumns(name) {
  const buffer = await blockBytes(name);
  if (!buffer) {
    return null;
  }
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const start = 8 + Math.ceil(length / 8) * 8;
  const columns = {};
  for (const column of head.columns) {
    columns[column.name] = new columnTypes[column.type](buffer, start + column.offset, column.count);
  }
  return { ...head, data: columns };
}

/// Makes an element, as in element("button", {type: "button"}, "Save"); children are elements or text.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) {
      made.addEventListener(key.slice(2), value);
    } else if (value !== null && value !== false) {
      made.setAttribute(key, value === true ? "" : value);
    }
  }
  made.append(...children);
  return made;
}

function button(text, about, onclick) {
  return element("button", { type: "button", "aria-label": about, title: about, onclick }, text);
}

/// Announces text to screen readers.
function announce(text) {
  const region = document.getElementById("announced");
  if (region) {
    region.textContent = text;
  }
}

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = element("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/// Rounds like fmt and printf: to nearest, exact halves to the even digit.
function fixed(value, decimals) {
  const scaled = value * 2 ** (decimals + 1);
  if (Number.isInteger(scaled) && Math.abs(scaled % 2) === 1 && Math.abs(value) < 2 ** 40) {
    const units = value * 10 ** decimals; // The comparison below is exact, because a half is a short binary fraction.
    const below = Math.floor(units);
    if (units - below === 0.5) {
      const even = below % 2 === 0 ? below : below + 1;
      return (even / 10 ** decimals).toFixed(decimals);
    }
  }
  return value.toFixed(decimals);
}

/// Returns one unit for all times of a figure, as in reports/time_scale.h: microseconds below 10 ms, milliseconds below
/// 10 s, then seconds.
function timeUnit(longestPs) {
  const [name, microseconds, decimals] = longestPs >= 1e13 ? ["s", 1e6, longestPs >= 1e15 ? 0 : 3] : longestPs >= 1e10 ? ["ms", 1000, longestPs >= 1e12 ? 1 : 3] : ["\u00b5s", 1, 1];
  const value = (ps) => ps / 1e6 / microseconds;
  const digits = (ps) => fixed(value(ps), decimals);
  return { name, value, digits, text: (ps) => `${digits(ps)} ${name}` };
}

const percent = (share) => `${fixed(100 * share, 1)}%`;

/// Returns a cell of CSV by RFC 4180. Like the program's CSV, it puts an apostrophe before a string that a spreadsheet
/// would take for a formula.
function csvCell(value) {
  const plain = String(value ?? "");
  const isFormula = /^[=+\-@\t\r]./s.test(plain) && !Number.isFinite(Number(plain));
  const text = isFormula ? `'${plain}` : plain;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const csvOf = (columns, rows) => [columns, ...rows].map((row) => row.map(csvCell).join(",") + "\r\n").join("");

const ROLES = ["ground", "ink", "muted", "essential", "local", "communication", "exposed", "first", "second", "third", "fourth",
  "fifth", "sixth", "seventh", "tie", "nothing", ...Array.from({ length: 9 }, (_, i) => `s${i}`), ...Array.from({ length: 9 }, (_, i) => `d${i}`)];

/// Returns the colours of figures, from the style sheet of the static drawings.
function palette() {
  const probe = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  probe.setAttribute("class", "cf-figure");
  probe.setAttribute("width", "0");
  probe.setAttribute("height", "0");
  document.body.append(probe);
  const colour = (name, what, property) => {
    const sample = document.createElementNS("http://www.w3.org/2000/svg", what);
    sample.setAttribute("class", name);
    probe.append(sample);
    return getComputedStyle(sample)[property];
  };
  const byRole = (make) => Object.fromEntries(ROLES.map((role) => [role, make(role)]));
  const fills = byRole((role) => colour(`cf-${role}`, "rect", "fill"));
  const lines = byRole((role) => colour(`cf-line cf-line-${role}`, "path", "stroke"));
  const texts = byRole((role) => colour(`cf-on-${role}`, "text", "fill"));
  const colours = {
    ...fills,
    text: colour("", "text", "fill"),
    quiet: colour("cf-quiet", "text", "fill"),
    grid: colour("cf-grid", "line", "stroke"),
    axis: colour("cf-axis", "line", "stroke"),
    fill: (role) => fills[role],
    line: (role) => lines[role],
    on: (role) => texts[role],
  };
  probe.remove();
  return colours;
}

const darkness = matchMedia("(prefers-color-scheme: dark)");
