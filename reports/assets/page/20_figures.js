// SPDX-License-Identifier: Apache-2.0
// Functions that every figure of the page has: saving as SVG and as CSV and, with the chart library, an interactive
// drawing with zoom and tips.

/// Returns the static drawing as a separate file, in light colours like every saved picture.
function standaloneSvg(figure) {
  const drawing = figure.querySelector(".cf-static svg.cf-figure").cloneNode(true);
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = document.getElementById("figure-style").textContent.split("@media")[0];
  drawing.prepend(style);
  return new XMLSerializer().serializeToString(drawing);
}

function addTools(figure, spec) {
  const tools = element("div", { class: "tools", role: "group", "aria-label": "This figure" });
  tools.append(
    button("SVG", "Save the figure as SVG", () => save(`${spec.id}.svg`, "image/svg+xml", standaloneSvg(figure))),
  );
  if (spec.data) {
    const { columns, rows } = spec.data;
    tools.append(button("CSV", "Save what it shows as CSV", () => save(`${spec.id}.csv`, "text/csv", csvOf(columns, rows))));
  }
  figure.querySelector("figcaption").append(tools);
  return tools;
}

/// Draws a figure when it nears the screen, and again when the colour scheme changes.
function drawWhenSeen(figure, spec, tools) {
  const live = element("div", { class: "cf-live", tabindex: "0", role: "img", "aria-label": `${spec.title}. ${spec.description}` });
  const draw = () => {
    report.charts.get(spec.id)?.dispose();
    figure.classList.add("live");
    report.charts.set(spec.id, globalThis.commfuseCharts.draw(live, spec, palette(), announce));
  };
  figure.querySelector(".cf-static").before(live);
  const seen = new IntersectionObserver(
    (entries) => {
      if (entries.some((entry) => entry.isIntersecting)) {
        seen.disconnect();
        try {
          draw();
          report.charts.get(spec.id).addTools(tools, button);
          darkness.addEventListener("change", draw);
        } catch (error) {
          figure.classList.remove("live"); // The static drawing remains.
          live.remove();
          report.failures.push(`${spec.id}: ${error.message}`);
        }
      }
    },
    { rootMargin: "400px" },
  );
  seen.observe(figure);
}

async function startFigures() {
  const text = await blockText("figures");
  for (const spec of text ? JSON.parse(text) : []) {
    report.figures.set(spec.id, spec);
  }
  for (const figure of document.querySelectorAll("figure[data-figure]")) {
    const spec = report.figures.get(figure.dataset.figure);
    if (spec) {
      figure.cfTools = addTools(figure, spec);
    }
  }
}

/// Starts the chart library. It is large, so it is unpacked after everything else.
async function startCharts() {
  const code = await blockText("charts");
  if (!code) {
    return;
  }
  document.head.append(element("script", {}, code)); // The page's policy lists its digest.
  if (!globalThis.commfuseCharts) {
    report.failures.push("the chart library did not start");
    return;
  }
  for (const figure of document.querySelectorAll("figure[data-figure]")) {
    const spec = report.figures.get(figure.dataset.figure);
    if (spec && !spec.staysStatic) {
      drawWhenSeen(figure, spec, figure.cfTools);
    }
  }
  const about = document.getElementById("licences");
  if (about) {
    about.textContent = globalThis.commfuseCharts.licences;
  }
}
