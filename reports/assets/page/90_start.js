// SPDX-License-Identifier: Apache-2.0
// Starts with the first visible part. If a part fails, that part stays as it is without scripts.

async function startReport() {
  for (const part of [startFigures, startTimelines, startTable, startCharts]) {
    try {
      await part();
    } catch (error) {
      report.failures.push(`${part.name}: ${error.message}`);
      console.error(error);
    }
  }
  report.readyAt = performance.now();
  document.documentElement.dataset.report = "ready";
}

startReport();
