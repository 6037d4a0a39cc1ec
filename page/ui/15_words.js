// SPDX-License-Identifier: Apache-2.0
// Words for the engine's notation (options of schedules, parts of tensors, how an op runs), and the hints that show
// these words when an element is hovered, focused or touched.

/// Meanings of columns and parts, by name.
const WORDS = {
  Time: "Predicted time of the rank that finishes last.",
  "\u00b1": "One standard error of the time, propagated from every machine parameter.",
  Fastest: "Probability that this schedule is faster than the fastest of the others. The sum over all schedules may differ from 100%.",
  "vs serial": "How much more (+) or less (\u2212) time than serial, or than the fastest schedule without overlap.",
  "Beats serial": "Probability that this implementation takes less time than serial.",
  p99: "99% of runs under jitter are no slower.",
  MFU: "Model FLOPs utilization: FLOPs of the layer divided by time, number of GPUs and dense peak.",
  Memory: "Memory that one GPU needs.",
  Tokens: "Tokens that all GPUs together process per second.",
  Compute: "The layer's own work, priced without slicing.",
  Slicing: "What cutting that work costs: the price of the pieces minus compute.",
  Stretch: "How much longer the work runs because communication takes SMs and memory bandwidth.",
  Local: "The schedule's own adds and copies, while nothing of the layer computes.",
  Exposed:
    "Time in which neither the layer's work nor a local op runs, so communication is not hidden. Head, bubble and tail also count local ops there, so they may sum to more.",
  Head: "Exposed time before the first work of the layer, which waits for its first data.",
  Bubble: "Exposed time between two pieces of work.",
  Tail: "Exposed time after the last work: communication that nothing is left to hide.",
  Waiting: "Time in which GPUs wait for each other or for the pipeline.",
  Gradients: "Gradient communication time that is not hidden.",
  Optimizer: "Time of the optimizer's step.",
  Bound: "A lower bound on time, such as fused_kernel with ideal kernels; it does not compete with implementations.",
  Tie: "It is uncertain which schedule is fastest: the difference is 2% or less, or its probability of being the fastest is below 80%.",
  "Too close to call": "It is uncertain whether overlap beats serial: the difference is 2% or less, or the probability is below 80%.",
};

/// Descriptions of a schedule's options, by label.
const OPTION_WORDS = [
  [/^k=(\d+)$/, (k) => `work and communication are cut into ${k} slices`],
  [/^m=(\d+)$/, (m) => (m === "1" ? "shards are sent whole" : `each shard is cut into ${m} sub-slices, sent one at a time`)],
  [/^g=(\d+)$/, (g) => (g === "1" ? "one shard per GEMM" : `${g} shards per GEMM: fewer and larger GEMMs`)],
  [/^ring$/, () => "shards pass from neighbour to neighbour around a ring"],
  [/^direct$/, () => "each shard goes straight to the rank that needs it"],
  [/^ring both ways$/, () => "shards pass around a ring in both directions"],
  [/^halves$/, () => "half of each shard goes each way"],
  [/^shards$/, () => "half of the shards go each way"],
  [/^nested rings of (\d+)$/, (n) => `inner rings of ${n} ranks inside a larger ring`],
  [/^(\d+) lanes$/, (n) => `up to ${n} transfers at the same time`],
  [/^one lane per peer$/, () => "transfers to all peers at the same time"],
  [/^sum on arrival$/, () => "partial sums are added as they arrive, not all at the end"],
  [/^add on aux$/, () => "adds run on an auxiliary stream, concurrently with the GEMMs"],
  [/^by query$/, () => "attention is split by queries"],
  [/^zig-zag$/, () => "attention is split so that the causal mask leaves equal work to all ranks"],
  [/^ideal$/, () => "ideal kernels: an implementation of this schedule takes longer, but other schedules may be faster"],
  [/^no bound$/, () => "not a lower bound here, and no implementation exists"],
  [/^bound$/, () => "a lower bound that no implementation reaches"],
];

/// "commfuse (direct, g=3)" becomes [["direct", meaning], ["g=3", meaning]].
function scheduleOptions(label) {
  const names = /\(([^()]*)\)$/.exec(label)?.[1].split(", ") ?? [];
  return names.flatMap((name) => {
    const [rule, words] = OPTION_WORDS.find(([pattern]) => pattern.test(name)) ?? [];
    return rule ? [[name, words(rule.exec(name)[1])]] : [];
  });
}

/// Turns the engine's words into the page's terms.
const inTerms = (words) => words.replace("one partial product", "one part of the GEMM").replace(/\bproduct(s?)\b/g, "GEMM$1");
const strategyWords = (name) => inTerms(facts.start?.strategies.find((strategy) => strategy.name === name)?.words ?? "");

/// Describes a schedule and its options, one line each.
function scheduleWords(label, name) {
  const options = scheduleOptions(label).map(([option, words]) => `${option}: ${words}`);
  const words = strategyWords(name);
  return [words && `${name}: ${words}`, ...options].filter(Boolean).join("\n");
}

const OPS = {
  gemm: "GEMM",
  all_gather: "all-gather",
  reduce_scatter: "reduce-scatter",
  all_reduce: "all-reduce",
  all_to_all: "all-to-all",
};

/// "0 +: 8" becomes "0\u20137", "6; 5; 4" becomes "6, 5, 4".
function partsText(index) {
  return index
    .replace(/(\d+) \+: (\d+)/g, (_, first, size) => (size === "1" ? first : `${first}\u2013${Number(first) + Number(size) - 1}`))
    .replaceAll("; ", ", ");
}

/// Turns "gemm down.partial[0 +: 8]" into ["GEMM down.partial, parts 0\u20137", "down.partial, parts 0\u20137", "parts
/// 0\u20137", "0\u20137"].
function opTexts(label) {
  const [, op, tensor, index] = /^(\S+) ([^[]*)(?:\[([^\]]+)\])?$/.exec(label) ?? [];
  if (!op) {
    return [label];
  }
  const name = `${OPS[op] ?? op} ${tensor}`;
  if (!index) {
    return [name, op === "gemm" ? tensor : (OPS[op] ?? op)];
  }
  const parts = partsText(index.includes(",") ? `(${index})` : index); // "0, 1; 0, 2" has two numbers per part
  const named = `${/^\d+$/.test(parts) ? "part" : "parts"} ${parts}`;
  return [`${name}, ${named}`, `${tensor}, ${named}`, named, parts];
}
const opText = (label) => opTexts(label)[0];

const LIMITS = {
  "power sets the time": "The power limit sets its time.",
  "HBM traffic sets the time": "HBM traffic sets its time.",
  "the k loops set the time": "The loops over k set its time.",
  "the shortest kernel sets the time": "It takes as long as the shortest kernel.",
  "the shortest kernel sets most of the time": "Most of its time is that of the shortest kernel.",
};
const WAYS = [
  [/^NCCL's (ring|tree) with (\w+)$/, (shape, protocol) => `NCCL runs it as a ${shape} with protocol ${protocol}.`],
  [/^sums in the switch \(NVLS\)$/, () => "The switch adds it up (NVLS)."],
  [/^(?:fused|unfused), /, () => null],
  [/^(inside the kernel .*)$/, (place) => `It runs ${place}.`],
  [/^inside a kernel, /, () => "It runs inside a kernel, at the fastest possible rate."],
  [/^over the network between nodes(, small messages)?$/, (small) => `It crosses the network${small ? " as small messages" : ""}.`],
  [/^(ring|the fastest tree of nodes)$/, (shape) => `It runs as ${shape === "ring" ? "a ring" : shape}.`],
  [/^(direct.*)$/, (way) => `It goes ${way}.`],
];

/// Turns how an op runs, "tile 192 x 128, 4 waves, the last 86% full on 116 of 132 SMs; power sets the time", into
/// sentences.
function howText(how, kind) {
  const gemm = /^tile (\d+) x (\d+)(?:, k in (\d+) parts)?, (.*? full)(?: on (\d+) of (\d+) SMs)?; (.*)$/.exec(how);
  if (gemm) {
    const [, m, n, splits, waves, sms, allSms, limit] = gemm;
    const share = sms ? ` It has ${sms} of ${allSms} SMs; communication takes the others.` : "";
    const cut = splits ? `, with k in ${splits} parts` : "";
    return `It runs in tiles of ${m} \u00d7 ${n}, in ${waves}${cut}.${share} ${LIMITS[limit] ?? `${limit}.`}`;
  }
  if (LIMITS[how]) {
    return LIMITS[how];
  }
  const way = WAYS.find(([pattern]) => pattern.test(how));
  if (way) {
    const [pattern, words] = way;
    return words(...pattern.exec(how).slice(1)) ?? `The kernel is ${how}.`;
  }
  if (kind === "exchange") {
    const [, link, small] = /^(.+?)(, small messages)?$/.exec(how);
    return `It goes over ${link}${small ? " as small messages" : ""}.`;
  }
  return `It uses ${how}.`;
}

/// Returns text with a hint that appears when the text is hovered, focused or touched. Screen readers also get `words`.
function hinted(text, words, look = "") {
  return element("button", { type: "button", class: `hint ${look}`.trim(), "data-hint": words, "aria-description": words }, text);
}

/// A single tip for all elements with data-hint.
class Hints {
  constructor(tip) {
    this.tip = tip;
    this.owner = null;
    const hintOf = (event) => event.target.closest?.("[data-hint]");
    const follow = (event) => (hintOf(event) ? this.show(hintOf(event)) : this.hide());
    document.addEventListener("focusin", follow);
    document.addEventListener("focusout", () => this.hide());
    document.addEventListener("click", follow);
    document.addEventListener("pointerover", (event) => {
      const hovers = event.pointerType === "mouse" && (hintOf(event) || this.owner);
      hovers && this.owner !== document.activeElement && follow(event); // A focused element keeps its tip.
    });
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.hide());
    // A new result replaces the tables, and the owner of the tip with them.
    const move = () => (this.owner.isConnected ? this.show(this.owner) : this.hide());
    addEventListener("scroll", () => this.owner && move(), { capture: true, passive: true });
  }

  show(owner) {
    this.owner = owner;
    this.tip.textContent = owner.dataset.hint;
    this.tip.hidden = false;
    const box = owner.getBoundingClientRect();
    const { offsetWidth: wide, offsetHeight: high } = this.tip;
    this.tip.style.left = `${Math.max(6, Math.min(box.left, innerWidth - wide - 6))}px`;
    this.tip.style.top = `${box.top > high + 12 ? box.top - high - 6 : box.bottom + 6}px`;
  }
  hide() {
    this.owner = null;
    this.tip.hidden = true;
  }
}
