// SPDX-License-Identifier: Apache-2.0
// Figures (reports/figure/figure.h, as JSON) drawn by ECharts: the marks of the static drawing, with zoom and a tip
// under the pointer. A report contains only the parts of the library that are named here.
import { CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { AriaComponent, DataZoomInsideComponent, GridComponent, TooltipComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { seriesOf } from "./series.mjs";

echarts.use([CustomChart, LineChart, ScatterChart, AriaComponent, DataZoomInsideComponent, GridComponent, TooltipComponent,
  CanvasRenderer]);

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

/// The library sees logarithms on a linear axis, so that ticks are the same as in the static figure.
export function scaleOf(axis) {
  const to = axis.logarithmic ? Math.log10 : (value) => value;
  const from = axis.logarithmic ? (value) => 10 ** value : (value) => value;
  return { to, from };
}

/// Returns true if the label of a tick is its value; names on an axis may also be numbers.
const isValue = ([at, label]) => Math.abs(Number(label.replace("\u2212", "-")) - at) <= 1e-6 * Math.abs(at);

const LETTER = 6.4; // approximate width of a letter, in pixels

/// Shortens a name to two lines: a dotted name to its last part, which distinguishes it from its neighbours.
function shortened(label, space) {
  if (!Number.isFinite(space)) {
    return label;
  }
  const maxLetters = Math.floor(space / LETTER);
  if (label.length <= maxLetters) {
    return label;
  }
  if (label.includes(" ")) { // The library breaks it at blanks; two lines hold part of a schedule's options.
    return label.length > 1.6 * maxLetters ? `${label.slice(0, Math.floor(1.6 * maxLetters)).replace(/[ ,(]+$/, "")}\u2026` : label;
  }
  const name = label.includes(".") ? `\u2026${label.slice(label.lastIndexOf(".") + 1)}` : label;
  const bar = name.length > maxLetters ? name.lastIndexOf("_", maxLetters - 1) : -1; // Two lines, broken between words.
  return bar < 0 ? name : `${name.slice(0, bar + 1)}\n${name.slice(bar + 1)}`;
}

/// Numbers on a linear axis get new ticks on zoom; names and logarithms keep theirs.
function ticksOf(axis, scale, space) {
  const steady = axis.logarithmic || !axis.ticks.every(isValue);
  if (!steady || axis.ticks.length === 0) {
    const isTick = (end) => axis.ticks.some(([at]) => at === end); // The ends of an axis are seldom round numbers.
    const formatter = (value) => String(Number(Number(value).toPrecision(6))).replace(/^-/, "\u2212");
    return { axisTick: { show: false }, axisLabel: { show: axis.ticks.length > 0, hideOverlap: true, showMinLabel: isTick(axis.low), showMaxLabel: isTick(axis.high), formatter } };
  }
  const labels = new Map(axis.ticks.map(([at, label]) => [scale.to(at).toPrecision(9), label]));
  const customValues = axis.ticks.map(([at]) => scale.to(at));
  return {
    axisTick: { show: false, customValues },
    axisLabel: { customValues, hideOverlap: space === null, ...(Number.isFinite(space) ? { width: space, overflow: "break", lineHeight: 13 } : {}), formatter: (value) => shortened(labels.get(Number(value).toPrecision(9)) ?? "", space) },
  };
}

function axisOf(axis, name, scale, colours, space) {
  const ticks = ticksOf(axis, scale, space);
  const title = axis.unit ? `${axis.label} (${axis.unit})` : axis.label;
  return {
    type: "value",
    min: scale.to(axis.low),
    max: scale.to(axis.high),
    inverse: axis.reversed,
    name: title,
    nameLocation: name === "x" ? "middle" : "end",
    nameGap: name === "x" ? 30 : 14,
    nameTextStyle: { color: colours.quiet, fontFamily: FONT, fontSize: 12, align: name === "x" ? "center" : "left" },
    axisLine: { show: axis.grid || name === "x", onZero: false, lineStyle: { color: colours.axis } },
    splitLine: { show: axis.grid, lineStyle: { color: colours.grid } },
    ...ticks,
    axisLabel: { color: colours.quiet, fontFamily: FONT, fontSize: 12, ...ticks.axisLabel },
  };
}

/// Shows the meanings of colours, dashes and symbols above the figure, as in the static drawing.
function legendOf(figure, place) {
  const list = document.createElement("ul");
  list.className = "legend";
  for (const entry of figure.legend) {
    const item = document.createElement("li");
    const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    swatch.setAttribute("class", "cf-figure");
    swatch.setAttribute("width", "20");
    swatch.setAttribute("height", "12");
    swatch.setAttribute("viewBox", "0 0 20 12");
    swatch.append(swatchOf(entry, figure));
    item.append(swatch, entry.text);
    list.append(item);
  }
  place.append(list);
}

/// Outlines of the symbols in the legend, inside 16 by 12 pixels.
const SYMBOLS = {
  circle: "M2.5 6a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0Z",
  square: "M2.5 .5h11v11h-11Z",
  diamond: "M2.5 6l5.5 5.5l5.5 -5.5l-5.5 -5.5Z",
  triangle: "M2.5 11.5h11L8 .5Z",
};

function swatchOf(entry, figure) {
  const svg = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) {
      made.setAttribute(key, value);
    }
    return made;
  };
  if (entry.line) {
    return svg("line", { x1: 0, y1: 6, x2: 20, y2: 6, class: `cf-line cf-line-${entry.role}`, "stroke-dasharray": entry.dashes ?? "none" });
  }
  if (entry.symbol) {
    return svg("path", { d: SYMBOLS[entry.symbol], class: `cf-point cf-${entry.role}` });
  }
  if (!entry.hatched) {
    return svg("rect", { width: 16, height: 12, class: `${entry.band ? "cf-band " : ""}cf-${entry.role}` });
  }
  const hatched = svg("g", {});
  hatched.append(svg("rect", { x: 0.5, y: 0.5, width: 15, height: 11, class: "cf-hatched", fill: "none" }));
  for (const x of [-4, 2, 8]) {
    hatched.append(svg("path", { d: `M${Math.max(x, 0)} ${12 + Math.min(x, 0)}L${Math.min(x + 12, 16)} ${Math.max(x - 4, 0)}`, class: "cf-hatch" }));
  }
  return hatched;
}

function strip(figure, place) {
  const { scale } = figure;
  const made = document.createElement("div");
  made.className = "strip";
  const cells = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  cells.setAttribute("width", "234");
  cells.setAttribute("height", "12");
  for (let i = 0; i < 9; ++i) {
    const cell = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [key, value] of Object.entries({ x: 26 * i, width: 26, height: 12, class: `cf-${scale.diverging ? "d" : "s"}${i}` })) {
      cell.setAttribute(key, value);
    }
    cells.append(cell);
  }
  const words = document.createElement("div");
  words.className = "strip-words";
  for (const text of [scale.low, scale.middle, scale.high]) {
    const span = document.createElement("span");
    span.textContent = text;
    words.append(span);
  }
  const label = document.createElement("div");
  label.textContent = scale.label;
  made.append(cells, words, label);
  place.append(made);
}

/// Returns the pixels for the names of the y axis, at most about a third of the figure.
function leftOf(axis, width) {
  const widest = Math.max(0, ...axis.ticks.map(([, label]) => label.length));
  return Math.round(Math.min(20 + widest * 7, Math.max(0.34 * width, 60)));
}

function optionOf(figure, scales, colours, width) {
  const left = leftOf(figure.y, width);
  const zooms = !figure.marks.some((mark) => mark.kind === "cell");
  return {
    animation: false,
    aria: { enabled: true, label: { description: `${figure.title}. ${figure.description}` } },
    grid: { left, right: figure.marks.some((mark) => mark.kind === "text") ? Math.min(64, 0.16 * width) : 24, top: figure.y.label ? 34 : 12, bottom: figure.x.label ? 50 : 30 },
    xAxis: axisOf(figure.x, "x", scales.x, colours, null),
    yAxis: axisOf(figure.y, "y", scales.y, colours, left < leftOf(figure.y, Infinity) ? left - 12 : Infinity),
    tooltip: {
      trigger: "item",
      renderMode: "richText", // Drawn, never parsed as markup.
      confine: true,
      backgroundColor: colours.ground,
      borderColor: colours.axis,
      textStyle: { color: colours.text, fontFamily: FONT, fontSize: 13 },
      formatter: (item) => item.data?.tip ?? "",
    },
    dataZoom: zooms
      ? [
          { type: "inside", xAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseMove: true },
        ]
      : [],
    series: seriesOf(figure, scales, colours),
  };
}

/// Makes arrow keys move from tip to tip.
function walkByKeys(chart, place, announce) {
  const stops = [];
  chart.getOption().series.forEach((series, seriesIndex) => {
    series.data.forEach((item, dataIndex) => item?.tip && stops.push({ seriesIndex, dataIndex, tip: item.tip }));
  });
  let stop = -1;
  place.onkeydown = (event) => {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!by || stops.length === 0) {
      return;
    }
    event.preventDefault();
    stop = (stop + by + stops.length) % stops.length;
    const { seriesIndex, dataIndex, tip } = stops[stop];
    chart.dispatchAction({ type: "showTip", seriesIndex, dataIndex });
    announce(tip);
  };
}

function zoomOf(chart) {
  const { start, end } = chart.getOption().dataZoom[0];
  return (factor) => {
    const middle = (start + end) / 2;
    const half = Math.min(((end - start) / 2) * factor, 50);
    const from = Math.min(Math.max(middle - half, 0), 100 - 2 * half);
    chart.dispatchAction({ type: "dataZoom", start: from, end: from + 2 * half });
  };
}

/// Draws a figure into `place`, in these colours.
function draw(place, figure, colours, announce) {
  place.replaceChildren();
  legendOf(figure, place);
  const canvas = document.createElement("div");
  canvas.className = "canvas";
  canvas.style.height = `${figure.height + 84}px`;
  if (figure.plot_width > 0) {
    canvas.style.maxWidth = `${figure.plot_width + leftOf(figure.y, Infinity) + 40}px`;
  }
  place.append(canvas);
  if (figure.scale) {
    strip(figure, place);
  }
  const scales = { x: scaleOf(figure.x), y: scaleOf(figure.y) };
  const chart = echarts.init(canvas, null, { renderer: "canvas" });
  const width = () => canvas.clientWidth;
  let drawn = width();
  chart.setOption(optionOf(figure, scales, colours, drawn));
  const zooms = chart.getOption().dataZoom.length > 0;
  const wheel = (zoomOnMouseWheel) => zooms && chart.setOption({ dataZoom: [{ zoomOnMouseWheel }] });
  place.onfocus = () => wheel(true);
  place.onblur = () => wheel("ctrl");
  walkByKeys(chart, place, announce);
  const sizes = new ResizeObserver(() => {
    chart.resize();
    if (leftOf(figure.y, width()) !== leftOf(figure.y, drawn)) {
      chart.setOption(optionOf(figure, scales, colours, width()), true); // Replaces everything: a merge would keep the old widths.
    }
    drawn = width();
  });
  sizes.observe(canvas);
  return {
    chart,
    dispose() {
      sizes.disconnect();
      chart.dispose();
    },
    addTools(tools, button) {
      const current = () => globalThis.commfuseReport.charts.get(figure.id).chart;
      if (zooms) {
        tools.prepend(
          button("+", "Zoom in", () => zoomOf(current())(0.5)),
          button("\u2212", "Zoom out", () => zoomOf(current())(2)),
          button("Reset", "Show all", () => current().dispatchAction({ type: "dataZoom", start: 0, end: 100 })),
        );
      }
    },
  };
}

globalThis.commfuseCharts = { draw, version: __ECHARTS_VERSION__, licences: __LICENCES__ };
