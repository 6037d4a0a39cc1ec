// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/shown_figures.h"

#include <utility>

#include "reports/crossover.h"
#include "reports/figure/crossing.h"

namespace commfuse::sim {

namespace {

template <class Row>
std::vector<reports::Figure> winners_of(std::span<const Row> rows, const VerdictRule& rule) {
  std::vector<reports::Figure> figures;
  for (const CrossoverMap& map : reports::maps_of(rows, rule)) {
    figures.push_back(reports::winner_figure(map));
  }
  return figures;
}

}  // namespace

std::vector<reports::Figure> figures_of(std::span<const ResultRow> rows, const VerdictRule& rule) {
  std::vector<reports::Figure> figures = winners_of(rows, rule);
  if (auto lead = reports::lead_figure(rows, "commfuse", "lead", rule)) {
    figures.push_back(*std::move(lead));
  }
  return figures;
}

std::vector<reports::Figure> figures_of(std::span<const StepRow> rows, const VerdictRule& rule) {
  return winners_of(rows, rule);
}

}  // namespace commfuse::sim
