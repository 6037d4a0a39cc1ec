// SPDX-License-Identifier: Apache-2.0
// One series per mark of a figure, except that consecutive boxes, cells or texts share a series.

const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

/// Lines across a box, in addition to its colour.
function hatching(box, colour) {
  const lines = [];
  const step = 7;
  for (let x = -box.height; x < box.width; x += step) {
    const x1 = Math.max(x, 0);
    const x2 = Math.min(x + box.height, box.width);
    if (x2 > x1) {
      lines.push({
        type: "line",
        silent: true,
        shape: { x1: box.x + x1, y1: box.y + box.height - (x1 - x), x2: box.x + x2, y2: box.y + box.height - (x2 - x) },
        style: { stroke: colour, lineWidth: 1.6 },
      });
    }
  }
  return lines;
}

function boxBetween(api, a, b) {
  const from = api.coord(a);
  const to = api.coord(b);
  return {
    x: Math.min(from[0], to[0]),
    y: Math.min(from[1], to[1]),
    width: Math.max(Math.abs(to[0] - from[0]), 0.5),
    height: Math.max(Math.abs(to[1] - from[1]), 0.5),
  };
}

const textAt = (x, y, text, fill, more = {}) => ({
  type: "text",
  silent: true,
  style: { x, y, text, fill, font: FONT, textAlign: "center", textVerticalAlign: "middle", ...more },
});

/// Approximate width of a string, only for deciding if it fits.
const widthOf = (text) => text.length * 6.4;

function boxes(marks, scales, colours) {
  const data = marks.map((mark) => ({ value: [scales.x.to(mark.from[0]), scales.y.to(mark.from[1])], tip: mark.tip, mark }));
  return {
    type: "custom",
    clip: true,
    data,
    encode: { x: 0, y: 1 },
    renderItem(parameters, api) {
      const { mark } = data[parameters.dataIndex];
      const box = boxBetween(api, [scales.x.to(mark.from[0]), scales.y.to(mark.from[1])], [scales.x.to(mark.to[0]), scales.y.to(mark.to[1])]);
      const fill = mark.hatched ? colours.ground : colours.fill(mark.role);
      const children = [{ type: "rect", shape: box, style: { fill, stroke: mark.hatched ? colours.fill(mark.role) : colours.ground, lineWidth: 1 } }];
      if (mark.hatched) {
        children.push(...hatching(box, colours.fill(mark.role)));
      }
      const text = (mark.labels ?? []).find((candidate) => widthOf(candidate) + 8 < box.width);
      if (text) {
        const halo = mark.hatched ? { stroke: colours.ground, lineWidth: 4 } : {};
        children.push(textAt(box.x + box.width / 2, box.y + box.height / 2, text, mark.hatched ? colours.text : colours.on(mark.role), halo));
      }
      return { type: "group", children };
    },
  };
}

function cells(marks, figure, colours) {
  const data = marks.map((mark) => ({ value: mark.at, tip: mark.tip, mark }));
  const nameOf = (mark) => {
    if (mark.role) {
      return mark.role;
    }
    if (mark.level === undefined) {
      return "nothing";
    }
    const step = Math.min(Math.max(Math.floor(mark.level * 9), 0), 8);
    return `${figure.scale?.diverging ? "d" : "s"}${step}`;
  };
  return {
    type: "custom",
    data,
    encode: { x: 0, y: 1 },
    renderItem(parameters, api) {
      const { mark } = data[parameters.dataIndex];
      const box = boxBetween(api, [mark.at[0] - 0.5, mark.at[1] - 0.5], [mark.at[0] + 0.5, mark.at[1] + 0.5]);
      const name = nameOf(mark);
      const children = [{ type: "rect", shape: box, style: { fill: colours.fill(name), stroke: colours.ground, lineWidth: 1 } }];
      if (name === "nothing") {
        const line = (y1, y2) => ({ type: "line", silent: true, shape: { x1: box.x + 4, y1, x2: box.x + box.width - 4, y2 }, style: { stroke: colours.axis } });
        children.push(line(box.y + 4, box.y + box.height - 4), line(box.y + box.height - 4, box.y + 4));
      } else if (box.height > 13) {
        const text = [mark.text, mark.text.split(" ")[0]].find((candidate) => widthOf(candidate) + 4 < box.width);
        if (text) {
          children.push(textAt(box.x + box.width / 2, box.y + box.height / 2, text, colours.on(name)));
        }
      }
      if (mark.framed) {
        children.push({ type: "rect", silent: true, shape: { x: box.x + 2, y: box.y + 2, width: box.width - 4, height: box.height - 4 }, style: { fill: "none", stroke: colours.ink, lineWidth: 1.5, lineDash: [3, 2] } });
      }
      return { type: "group", children };
    },
  };
}

const dashes = (mark) => (mark.dashes ? mark.dashes.split(" ").map(Number) : mark.dashed ? [5, 4] : "solid");

function line(mark, scales, colours) {
  return {
    type: "line",
    name: mark.name ?? "",
    step: mark.steps ? "end" : false,
    silent: !mark.tips,
    symbol: mark.tips ? "circle" : "none",
    symbolSize: mark.tips && mark.points.length > 40 ? 3 : 6,
    showAllSymbol: true,
    data: mark.points.map(([x, y], i) => ({ value: [scales.x.to(x), scales.y.to(y)], tip: mark.tips?.[i] })),
    lineStyle: { color: colours.line(mark.role), width: mark.role === "muted" ? 1.2 : 2, type: dashes(mark) },
    itemStyle: { color: colours.line(mark.role) },
    emphasis: { disabled: true },
    clip: true,
  };
}

function band(mark, scales, colours) {
  const edge = [...mark.low, ...[...mark.high].reverse()].map(([x, y]) => [scales.x.to(x), scales.y.to(y)]);
  return {
    type: "custom",
    silent: true,
    clip: true,
    data: [{ value: edge[0] }],
    renderItem: (parameters, api) => ({
      type: "polygon",
      silent: true,
      shape: { points: edge.map((point) => api.coord(point)) },
      style: { fill: colours.fill(mark.role), opacity: 0.22 },
    }),
    z: 1,
  };
}

const symbols = { circle: "circle", square: "rect", diamond: "diamond", triangle: "triangle" };

function points(mark, scales, colours) {
  return {
    type: "scatter",
    name: mark.name ?? "",
    symbol: symbols[mark.symbol],
    symbolSize: mark.size * 2,
    data: mark.points.map(([x, y], i) => ({ value: [scales.x.to(x), scales.y.to(y)], tip: mark.tips?.[i] })),
    itemStyle: { color: colours.fill(mark.role), opacity: 0.85, borderColor: colours.ground, borderWidth: 0.5 },
    clip: true,
  };
}

function texts(marks, scales, colours) {
  const data = marks.map((mark) => ({ value: [scales.x.to(mark.at[0]), scales.y.to(mark.at[1])], mark }));
  return {
    type: "custom",
    silent: true,
    data,
    renderItem(parameters, api) {
      const { mark, value } = data[parameters.dataIndex];
      const [x, y] = api.coord(value);
      const text = [mark.strong, mark.text].filter(Boolean).join(" ");
      const textAlign = { start: "left", middle: "center", end: "right" }[mark.anchor];
      return textAt(x, y, text, colours.text, { textAlign, textVerticalAlign: "bottom", stroke: colours.ground, lineWidth: 3 });
    },
    z: 5,
  };
}

/// Returns series in the order of the marks; countOf() in tests/browser expects their number.
export function seriesOf(figure, scales, colours) {
  const series = [];
  for (let i = 0; i < figure.marks.length; ) {
    const { kind } = figure.marks[i];
    const group = [];
    do {
      group.push(figure.marks[i++]);
    } while (["box", "cell", "text"].includes(kind) && i < figure.marks.length && figure.marks[i].kind === kind);
    const make = { box: () => boxes(group, scales, colours), cell: () => cells(group, figure, colours), text: () => texts(group, scales, colours),
      line: () => line(group[0], scales, colours), band: () => band(group[0], scales, colours), points: () => points(group[0], scales, colours) };
    series.push(make[kind]());
  }
  return series;
}
