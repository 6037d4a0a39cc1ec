// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/shown_figures.h"

#include <map>
#include <string>
#include <utility>

#include "reports/crossover.h"
#include "reports/figure/crossing.h"
#include "reports/html/charts.h"
#include "reports/html/points.h"

namespace commfuse::sim {

namespace {

template <class Row>
std::vector<reports::Figure> winners_of(std::span<const Row> rows, const VerdictRule& rule) {
  std::vector<reports::Figure> figures;
  const std::vector<CrossoverMap> maps = reports::maps_of(rows, rule);
  for (const CrossoverMap& map : maps) {
    figures.push_back(
        reports::with_subject(reports::winner_figure(map), maps.size() > 1 ? reports::heading_of(map) : std::string{}));
  }
  return figures;
}

/// Returns the lead of commfuse in each setting, because a figure has no axis for settings other than ranks and seq.
std::vector<reports::Figure> leads_of(std::span<const ResultRow> rows, const VerdictRule& rule) {
  std::map<std::string, std::size_t> indices;
  std::vector<std::pair<std::string, std::vector<ResultRow>>> settings;  // in order of appearance
  for (const ResultRow& row : rows) {
    const std::string title = reports::setting_title(row);
    const auto [entry, is_new] = indices.try_emplace(title, settings.size());
    if (is_new) {
      settings.emplace_back(title, std::vector<ResultRow>{});
    }
    settings[entry->second].second.push_back(row);
  }
  std::vector<reports::Figure> figures;
  for (const auto& [title, rows_of_setting] : settings) {
    if (auto lead = reports::lead_figure(rows_of_setting, "commfuse", "lead", rule)) {
      figures.push_back(reports::with_subject(*std::move(lead), settings.size() > 1 ? title : std::string{}));
    }
  }
  return figures;
}

}  // namespace

std::vector<reports::Figure> figures_of(std::span<const ResultRow> rows, const VerdictRule& rule) {
  std::vector<reports::Figure> figures = winners_of(rows, rule);
  for (reports::Figure& lead : leads_of(rows, rule)) {
    figures.push_back(std::move(lead));
  }
  return figures;
}

std::vector<reports::Figure> figures_of(std::span<const StepRow> rows, const VerdictRule& rule) {
  return winners_of(rows, rule);
}

}  // namespace commfuse::sim
