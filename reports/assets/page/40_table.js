// SPDX-License-Identifier: Apache-2.0
// All results as a table that sorts, filters and pages. Rows are stored as columns of numbers and words, so the table
// handles a million rows.

const PAGE = 25;

/// Parses a filter such as "seq>=8K strategy=commfuse mlp". Every part must match; a part without an operator may match
/// any column of words.
function parseFilter(text, columns) {
  return text
    .trim()
    .split(/\s+/)
    .filter(Boolean)
    .map((part) => {
      const match = /^([a-z_0-9]+)(<=|>=|!=|=|<|>)(.+)$/i.exec(part);
      const column = match && columns.find((candidate) => candidate.name === match[1] || candidate.title.toLowerCase() === match[1].toLowerCase());
      return column ? { column, how: match[2], value: match[3] } : { words: part.toLowerCase() };
    });
}

/// Reads "8K" as 8192, as settings do.
function numberIn(text) {
  const match = /^([-+0-9.e]+)([KMG]?)$/i.exec(text);
  return match ? Number(match[1]) * { "": 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 }[match[2].toUpperCase()] : NaN;
}

/// Returns why no row can match a part: its column is unknown, or it compares numbers with a text. Returns "" if rows
/// can match.
function mistakeIn(part) {
  if (part.words) {
    const unknown = /^([a-z_0-9]+)[<>=!]/.exec(part.words);
    return unknown ? `unknown column ${unknown[1]}` : "";
  }
  const needsNumber = !part.column.words || /[<>]/.test(part.how);
  return needsNumber && Number.isNaN(numberIn(part.value)) ? `${part.value} is not a number` : "";
}

/// Returns "commfuse" for "commfuse (ring)": filters name a strategy without its options.
const nameIn = (label) => label.split(" (")[0];

/// Marks by the value of the column `front`: 1 wins its point, 2 ties for first place.
const MARKS = { 1: { sign: "\u25b8", word: "fastest: ", wins: true }, 2: { sign: "\u2248", word: "tie: " } };

const compares = {
  "=": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  "<": (a, b) => a < b,
  ">": (a, b) => a > b,
  "<=": (a, b) => a <= b,
  ">=": (a, b) => a >= b,
};

class ResultsTable {
  constructor(place, block) {
    this.block = block;
    this.columns = block.columns.filter((column) => column.title).map((column) => ({ ...column, data: block.data[column.name] }));
    this.rows = Uint32Array.from({ length: block.rows }, (_, i) => i);
    this.sorted = null;
    this.page = 0;
    this.build(place);
    this.show();
  }

  build(place) {
    this.count = element("span", { class: "quiet", role: "status" });
    this.filterBox = element("input", {
      type: "search",
      size: "44",
      "aria-label": "Filter the rows",
      placeholder: "strategy=commfuse seq>=8K mfu>50",
      oninput: () => this.filter(this.filterBox.value),
    });
    this.body = element("tbody");
    this.heads = this.columns.map((column) => this.headOf(column));
    const head = element("thead", {}, element("tr", {}, ...this.heads));
    this.before = button("\u2039 Back", "Previous page", () => this.turn(-1));
    this.next = button("Next \u203a", "Next page", () => this.turn(1));
    place.replaceChildren(
      element("div", { class: "tools table-tools" }, element("label", {}, "Filter ", this.filterBox), this.count, this.before, this.next,
        button("CSV", "Save the rows shown by the filter as CSV", () => save("results.csv", "text/csv", this.csv()))),
      element("div", { class: "scroll", role: "region", "aria-label": "All results", tabindex: "0" },
        element("table", { class: "grid" }, head, this.body)),
    );
  }

  headOf(column) {
    const sorter = element("button", { type: "button", onclick: () => this.sort(column) }, column.title);
    const unit = column.unit ? [element("span", { class: "unit" }, column.unit)] : [];
    const classes = `${column.words ? "words" : ""}${column.name === "strategy" ? " name" : ""}`;
    return element("th", { scope: "col", class: classes, "aria-sort": "none" }, sorter, ...unit);
  }

  /// Returns the value in a column; NaN if the row has none.
  value(column, row) {
    return column.words ? column.words[column.data[row]] : column.data[row];
  }
  shown(column, row) {
    const value = this.value(column, row);
    if (column.words) {
      return value;
    }
    if (Number.isNaN(value)) {
      return "\u2014";
    }
    const text = column.kind === "time" ? fixed(value / 1e6, 1) : column.kind === "share" ? fixed(100 * value, 1) : String(value);
    if (Number(text) === 0) {
      return text.replace(/^-/, ""); // A value that rounds to zero has no sign.
    }
    const sign = column.name === "against_serial" && value > 0 ? "+" : "";
    return sign + text.replace(/^-/, "\u2212");
  }
  /// Formats like the program's CSV: times in microseconds with all digits.
  exact(column, row) {
    const value = this.value(column, row);
    return column.words ? value : Number.isNaN(value) ? "" : column.kind === "time" ? value / 1e6 : value;
  }
  csv() {
    const names = this.columns.map((column) => column.name);
    return csvOf(names, Array.from(this.rows, (row) => this.columns.map((column) => this.exact(column, row))));
  }

  holds(part, row) {
    if (part.words) {
      return this.columns.some((column) => column.words && String(this.value(column, row)).toLowerCase().includes(part.words));
    }
    const { column, how } = part;
    if (column.words) {
      const value = this.value(column, row);
      const [a, b] = [column.name === "strategy" ? nameIn(value) : value, part.value];
      const [na, nb] = [numberIn(a), numberIn(b)];
      return Number.isNaN(na) || Number.isNaN(nb) ? compares[how](a.toLowerCase(), b.toLowerCase()) : compares[how](na, nb);
    }
    const scale = column.kind === "time" ? 1e6 : column.kind === "share" ? 0.01 : 1;
    return compares[how](this.value(column, row), numberIn(part.value) * scale);
  }

  filter(text) {
    const parts = parseFilter(text, this.columns);
    const rows = [];
    for (let row = 0; row < this.block.rows; ++row) {
      if (parts.every((part) => this.holds(part, row))) {
        rows.push(row);
      }
    }
    this.rows = Uint32Array.from(rows);
    this.mistake = parts.map(mistakeIn).find(Boolean);
    this.page = 0;
    this.order();
    this.show();
  }

  sort(column) {
    const down = this.sorted?.column === column ? !this.sorted.down : false;
    this.sorted = { column, down };
    this.columns.forEach((other, i) => this.heads[i].setAttribute("aria-sort", other === column ? (down ? "descending" : "ascending") : "none"));
    this.page = 0;
    this.order();
    this.show();
  }
  order() {
    if (!this.sorted) {
      return;
    }
    const { column, down } = this.sorted;
    const numbers = column.words?.map(numberIn);
    const numeric = numbers?.every((value) => !Number.isNaN(value));
    const ranks = column.words && !numeric ? ranksOf(column.words) : numbers;
    const key = (row) => (ranks ? ranks[column.data[row]] : column.data[row]);
    const sign = down ? -1 : 1;
    const missing = (a) => (Number.isNaN(a) ? 1 : 0);
    this.rows.sort((a, b) => missing(key(a)) - missing(key(b)) || sign * (key(a) - key(b)) || a - b);
  }

  turn(by) {
    this.page += by;
    this.show();
  }
  show() {
    const pages = Math.max(Math.ceil(this.rows.length / PAGE), 1);
    const first = this.page * PAGE;
    const last = Math.min(first + PAGE, this.rows.length);
    this.before.disabled = this.page === 0;
    this.next.disabled = this.page + 1 >= pages;
    this.count.textContent = this.rows.length === 0 ? ["no rows", this.mistake].filter(Boolean).join(": ") : `rows ${grouped(first + 1)} to ${grouped(last)} of ${grouped(this.rows.length)}`;
    this.body.replaceChildren(...Array.from(this.rows.subarray(first, last), (row) => this.rowOf(row)));
  }
  rowOf(row) {
    const front = MARKS[this.block.data.front[row]];
    const cell = (column) => (column.name === "strategy" ? this.nameOf(column, row, front) : element("td", { class: column.words ? "words" : null }, this.shown(column, row)));
    return element("tr", { class: front?.wins ? "fastest" : null }, ...this.columns.map(cell));
  }
  /// Returns the cell that names the row and stays in view when the table scrolls.
  nameOf(column, row, front) {
    const mark = front ? [element("span", { class: "mark", "aria-hidden": "true" }, front.sign), element("span", { class: "unseen" }, front.word)] : [element("span", { class: "mark" })];
    return element("th", { scope: "row", class: "words name" }, ...mark, this.shown(column, row));
  }
}

function ranksOf(words) {
  const order = words.map((_, i) => i).sort((a, b) => (words[a] < words[b] ? -1 : words[a] > words[b] ? 1 : 0));
  const ranks = [];
  order.forEach((word, rank) => (ranks[word] = rank));
  return ranks;
}

/// Shows the table, which replaces the rows that the page has for readers without scripts.
async function fillTable(place) {
  const block = await blockColumns("rows");
  if (block) {
    report.table = new ResultsTable(place, block);
  }
}

/// Immediately hides the rows that the table replaces, and reserves the table's space, so that nothing below moves
/// when the table appears. Unpacks the rows, which may be many, when the table nears the screen.
function startTable() {
  const place = document.getElementById("all-rows");
  const packed = document.getElementById("block-rows");
  const first = document.getElementById("first-rows");
  if (!place || !packed) {
    return;
  }
  place.append(element("p", { class: "quiet" }, "The rows are being unpacked."));
  place.style.minHeight = `${90 + 24 * Math.min(PAGE, first.querySelectorAll("tbody tr:not(.point)").length)}px`;
  first.classList.add("replaced");
  const fail = (error) => {
    report.failures.push(`table: ${error.message}`);
    place.replaceChildren();
    first.classList.remove("replaced");
  };
  const seen = new IntersectionObserver(
    (entries) => {
      if (entries.some((entry) => entry.isIntersecting)) {
        seen.disconnect();
        fillTable(place).catch(fail);
      }
    },
    { rootMargin: "1500px" },
  );
  seen.observe(place);
}
