// SPDX-License-Identifier: Apache-2.0
// Implementations next to ideal schedules: kinds of rows, names, and whether overlap pays.
// An implementation may have the same name as a schedule (async_tp), so rows have ids, which links use too: "commfuse"
// is the schedule, "as:flux" the implementation.

const AS = "as:";
const isImplementation = (row) => Boolean(row.implements);
const idOf = (row) => (isImplementation(row) ? `${AS}${row.strategy}` : row.strategy);
/// Returns true for an implementation that runs communication and GEMMs one after another. It may beat serial, but not
/// by overlap.
const overlapsNothing = (row) => row.implements === "serial";
const withImplementations = (rows) => rows.some(isImplementation);
/// Returns true for an ideal schedule that is shown next to implementations and does not compete with them. Without
/// implementations, all schedules compete except fused_kernel.
const isIdeal = (row, rows) => withImplementations(rows) && !isImplementation(row) && isBound(row);
/// Returns a short name that distinguishes an ideal schedule from an implementation with the same name.
const shortLabel = (row, rows) => (isIdeal(row, rows) ? `${row.strategy} (ideal)` : row.strategy);

/// The page compares implementations in parts of a layer only.
const hasImplementations = () => !facts.start?.scopes.some((scope) => scope.whole && scope.name === setting("scope"));
const implementationOf = (name) => facts.start?.implementations?.find((implementation) => implementation.name === name);
/// Turns "its GEMM 173 us, the cost of its calls 30 us" into a part of a sentence.
const costsOf = (row) => listed((row?.held_back ?? "").replace(/ (\d+) us/g, ` ($1${NARROW}\u00b5s)`).split(", "));

/// Describes an implementation and the result of this row, one line each.
function implementationWords(name, row = null) {
  const known = implementationOf(name);
  const gpus = row?.unmeasured_on;
  return [
    `${name}: ${known?.words ?? "an implementation"}`,
    known?.implements ? `It runs the schedule of ${known.implements}.` : "",
    row?.held_back ? `Compared with ideal kernels, it loses time to ${costsOf(row)}.` : "",
    gpus ? `Nobody measured it on GPUs such as ${gpus}.` : "",
  ]
    .filter(Boolean)
    .join("\n");
}

/// Describes a row for hints.
const wordsOf = (row, label) => (isImplementation(row) ? implementationWords(row.strategy, row) : scheduleWords(label, row.strategy));

/// Returns indices of rows in display order: serial and available implementations first, then ideal schedules.
function shownOrder(rows) {
  const numbers = rows.map((_, i) => i);
  return [...numbers.filter((i) => !isIdeal(rows[i], rows)), ...numbers.filter((i) => isIdeal(rows[i], rows))];
}

const fastestIdeal = (rows) => rows.filter((row) => ran(row) && isIdeal(row, rows)).sort((a, b) => timeOf(a) - timeOf(b))[0] ?? null;

/// Returns the ids on the time axis if the user has chosen none: all ids or, next to implementations, those of serial,
/// the implementations and the fastest ideal schedule.
function usualIds(rows) {
  const ideal = fastestIdeal(rows);
  return rows.filter((row) => ran(row) && (!isIdeal(row, rows) || row === ideal)).map(idOf);
}

const GROUPS = ["Kernels you can get", "Ideal kernels"];
const groupOf = (row, rows) => GROUPS[Number(isIdeal(row, rows))];

/// Returns [name, indices of rows] for serial with the implementations, and for ideal schedules; one group without a
/// name if there are no implementations.
function groupsOf(rows) {
  const order = shownOrder(rows);
  return withImplementations(rows)
    ? GROUPS.map((name) => [name, order.filter((i) => groupOf(rows[i], rows) === name)]).filter(([, numbers]) => numbers.length > 0)
    : [["", order]];
}

/// "2%" and "0.02" become 0.02.
function shareOf(text, otherwise) {
  const share = Number.parseFloat(text) / (text.includes("%") ? 100 : 1);
  return Number.isFinite(share) ? share : otherwise;
}

/// Smaller differences are ties.
const winDifference = () => shareOf(setting("verdict.difference"), 0.02);

const minCertainty = () => shareOf(setting("verdict.probability"), 0.8);

const tieWords = () => `, and ${Number((100 * winDifference()).toPrecision(3))}% or less is a tie`;

const overlapImplementations = (rows) => rows.filter((row) => isImplementation(row) && !overlapsNothing(row));

/// Returns the recommended row: the fastest implementation that overlaps and clearly beats serial, or the fastest that
/// overlaps if none does.
function deployedOf(rows, serial) {
  const real = overlapImplementations(rows);
  const pays = (row) =>
    ran(row) && timeOf(serial) / timeOf(row) - 1 > winDifference() && (row.beats_serial ?? 1) >= minCertainty();
  return fastestOf(real.filter(pays)) ?? fastestOf(real);
}

/// Compares the recommended row with serial by the engine's rule: `pay` is "pays", "loses" or "unclear". Returns null
/// if no implementation that overlaps was simulated together with serial.
function recommendationOf(rows) {
  const serial = rows.find((row) => row.strategy === "serial" && !isImplementation(row) && ran(row));
  const have = serial && deployedOf(rows, serial);
  if (!have) {
    return null;
  }
  const times = timeOf(have) / timeOf(serial);
  const faster = have.beats_serial;
  const certainty = typeof faster === "number" ? (times < 1 ? faster : 1 - faster) : null;
  const clear =
    Math.max(times, 1 / times) - 1 > winDifference() &&
    (certainty ?? 1) >= minCertainty();
  const isSingle = rows.filter(isImplementation).length === 1;
  const fastest = fastestOf(overlapImplementations(rows));
  const first = fastestOf(rows.filter(isImplementation));
  const withoutOverlap = overlapsNothing(first) ? first : null;
  return { have, fastest, serial, times, certainty, isSingle, withoutOverlap, pay: clear ? (times < 1 ? "pays" : "loses") : "unclear" };
}

function recommendationHeadline({ have, times, certainty, isSingle, withoutOverlap, pay }) {
  const by = times < 1 ? `${percent(1 - times)} less` : `${percent(times - 1)} more`;
  const what = times < 1 ? "to beat serial" : "that serial is faster";
  // The difference is small, but certain.
  const isTie = pay === "unclear" && (certainty ?? 1) >= minCertainty();
  const surely = isTie ? tieWords() : certainty === null ? "" : ` (${pay === "unclear" ? "only " : ""}${sure(certainty)} ${what})`;
  const leads = {
    pays: "Overlap pays with kernels you can get",
    loses: "Overlap does not pay with kernels you can get",
    unclear: "Too close to call",
  };
  return `${leads[pay]}: ${have.strategy}${pay === "pays" || isSingle ? "" : `, the fastest implementation${withoutOverlap ? " that overlaps" : ""},`} takes ${by} time than serial${surely}.`;
}

/// Describes a faster implementation that the headline omits because it may not beat serial.
function passedOver({ have, fastest }) {
  const gain = percent(1 - timeOf(fastest) / timeOf(have));
  return fastest === have ? "" : `${fastest.strategy} may take ${gain} less time than ${have.strategy}, but is only ${sure(fastest.beats_serial)} to beat serial.`;
}

/// States that the fastest implementation, which overlaps nothing, beats serial.
function withoutOverlapSentence({ withoutOverlap: row, serial }) {
  if (!row || timeOf(row) >= timeOf(serial)) {
    return "";
  }
  const surely = typeof row.beats_serial === "number" ? ` (${sure(row.beats_serial)} to beat serial)` : "";
  return `${row.strategy}, which overlaps nothing, takes ${percent(1 - timeOf(row) / timeOf(serial))} less time than serial${surely}.`;
}

/// Describes a faster implementation without overlap, the possible gain of another implementation, the time of ideal
/// kernels, and the limits of the implementation in the headline.
function recommendationSecond(recommendation, rows) {
  const { have } = recommendation;
  const ideal = fastestIdeal(rows);
  const gain = ideal ? 1 - timeOf(ideal) / timeOf(have) : 0;
  const reach = gain > 0 ? `Ideal kernels (${ideal.strategy}) would take ${percent(gain)} less time than ${have.strategy}.` : "";
  const costs = have.held_back ? `${have.strategy} loses time to ${costsOf(have)}.` : "";
  return [withoutOverlapSentence(recommendation), passedOver(recommendation), reach, costs].filter(Boolean).join(" ");
}

/// Returns the words before those about ideal schedules if implementations were requested and none was simulated; ""
/// otherwise.
function idealsOnly(rows) {
  if (setting("as") === (state.presets.as ?? "") || withImplementations(rows)) {
    return "";
  }
  return live.whole
    ? "Whole models are simulated with ideal kernels. "
    : "No implementation described here runs this, so these are ideal kernels. ";
}

/// Names the implementations that are predicted for GPUs on which they were not measured, in one sentence.
function beyondSentence(rows) {
  const gpus = rows.map((row) => row.unmeasured_on).find(Boolean);
  const names = rows.filter((row) => row.unmeasured_on).map((row) => row.strategy);
  const joined = [names.slice(0, -1).join(", "), names.at(-1)].filter(Boolean).join(" and ");
  const hasMeasured = rows.some((row) => isImplementation(row) && ran(row) && !row.unmeasured_on);
  return gpus ? `Beyond the fit: ${joined} ${names.length > 1 ? "were" : "was"} not measured on GPUs such as ${gpus}${hasMeasured ? "; the others were measured on such GPUs" : ""}.` : "";
}

/// Returns the sentence below the control's list.
function asNote(rows) {
  if (!hasImplementations()) {
    return "This page compares implementations in parts of a layer only: choose a part under \u201cWhat runs\u201d.";
  }
  const text = setting("as");
  const real = (rows ?? []).filter(isImplementation).length;
  if (text === state.presets.as) {
    return "Times of ideal kernels. Choose implementations to see kernels you can get.";
  }
  if (text === "all") {
    return rows && !withImplementations(rows)
      ? "No implementation runs this, so ideal schedules are shown. Implementations cover forward GEMMs and mlp."
      : `${real > 0 ? `${real} run` : "All that run"} here, next to serial and ideal kernels.`;
  }
  return implementationOf(text)?.words ?? "named by the link";
}

const AS_CHOICES = [
  { name: "none", title: "ideal schedules only", words: "" },
  { name: "all", title: "all described here", words: "" },
];

/// Returns the control with the list of implementations.
function asField(start) {
  const field = listField("as", "Implementations", [
    ["Compare", AS_CHOICES],
    ["One implementation", start.implementations ?? []],
  ]);
  field.classList.add("wide");
  const { show } = controls.get("as");
  controls.get("as").show = () => {
    show();
    $("in-as").disabled = !hasImplementations();
    put("said-as", asNote(live.rows));
  };
  return field;
}

/// Returns choices for an implementation that does not run: another set, or a scope that it covers.
function asRemedies(sentence) {
  if (!/^implementation \S+ does not cover|^\S+ does not run on/.test(sentence) || setting("as") === "none") {
    return [];
  }
  const scopes = /scopes that it covers: ([\w, ]+)$/.exec(sentence)?.[1].split(", ") ?? [];
  return [
    ...AS_CHOICES.map(({ name, title }) => ({ words: `Implementations: ${title}`, changes: { as: name } })),
    ...scopes.map((scope) => ({ words: `scope ${scope}`, changes: { scope } })),
  ];
}
