// SPDX-License-Identifier: Apache-2.0
#include "reports/joined_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace commfuse::reports {

namespace {

using Scores = std::span<const TableScore>;
using Json = nlohmann::ordered_json;

bool is_included(const TableScore& score, Scores scores) {
  return !score.degraded && (!score.brought_along || std::ranges::all_of(scores, &TableScore::brought_along));
}

}  // namespace

std::vector<CoverageRow> coverage_rows(Scores scores) {
  std::vector<std::string> kinds;
  std::map<std::tuple<std::size_t, std::string, bool>, std::vector<CheckedTime>> times;
  for (const TableScore& score : scores) {
    for (const CheckedKind& checked : score.checked) {
      if (!is_included(score, scores)) {
        continue;
      }
      auto kind = std::find(kinds.begin(), kinds.end(), checked.kind);
      kind = kind == kinds.end() ? kinds.insert(kinds.end(), checked.kind) : kind;
      const auto kind_index = static_cast<std::size_t>(kind - kinds.begin());
      auto& collected = times[{kind_index, checked.machine, !checked.fitted}];
      collected.insert(collected.end(), checked.times.begin(), checked.times.end());
    }
  }
  std::vector<CoverageRow> rows;
  for (auto& [key, checked_times] : times) {
    const auto& [kind, machine, unfitted] = key;
    rows.push_back({kinds[kind], machine, !unfitted, coverage_of(std::move(checked_times))});
  }
  return rows;
}

PairsByMachine pairs_of(Scores scores) {
  PairsByMachine pairs;
  for (const TableScore& score : scores) {
    for (const JudgedPairs& judged : score.judged) {
      if (is_included(score, scores)) {
        auto& collected = pairs[judged.machine][judged.ways];
        collected.insert(collected.end(), judged.pairs.begin(), judged.pairs.end());
      }
    }
  }
  return pairs;
}

std::vector<JudgedPair> merged_pairs(const std::map<std::string, std::vector<JudgedPair>>& by_ways) {
  std::vector<JudgedPair> merged;
  for (const auto& [ways, pairs] : by_ways) {
    merged.insert(merged.end(), pairs.begin(), pairs.end());
  }
  return merged;
}

std::vector<JudgedPair> merged_pairs(const PairsByMachine& by_machine) {
  std::vector<JudgedPair> merged;
  for (const auto& [machine, by_ways] : by_machine) {
    const std::vector<JudgedPair> machine_pairs = merged_pairs(by_ways);
    merged.insert(merged.end(), machine_pairs.begin(), machine_pairs.end());
  }
  return merged;
}

std::vector<CheckedTime> times_of(Scores scores, bool fitted) {
  std::vector<CheckedTime> times;
  for (const TableScore& score : scores) {
    for (const CheckedKind& checked : score.checked) {
      if (is_included(score, scores) && checked.fitted == fitted) {
        times.insert(times.end(), checked.times.begin(), checked.times.end());
      }
    }
  }
  return times;
}

std::vector<Observation> observations_of(Scores scores) {
  std::vector<Observation> observations;
  for (const TableScore& score : scores) {
    if (is_included(score, scores)) {
      observations.insert(observations.end(), score.observations.begin(), score.observations.end());
    }
  }
  return observations;
}

std::vector<FitRows> fits_of(Scores scores) {
  std::map<std::pair<std::string, std::string>, FitRows> fits;
  for (const TableScore& score : scores) {
    for (const FitRows& fit : score.fits) {
      if (is_included(score, scores)) {
        FitRows empty{fit.machine, fit.key, fit.residual, {}, fit.by_limit};
        FitRows& merged = fits.try_emplace({fit.machine, fit.key}, std::move(empty)).first->second;
        merged.rows.insert(merged.rows.end(), fit.rows.begin(), fit.rows.end());
      }
    }
  }
  std::vector<FitRows> list;
  for (auto& [key, fit] : fits) {
    list.push_back(std::move(fit));
  }
  return list;
}

std::string whole_percent(double fraction) { return fmt::format("{:.0f}", 100.0 * fraction); }

std::string with_band(const ObservedShare& observed) {
  return fmt::format("{}±{}", whole_percent(observed.share), whole_percent(observed.band));
}

Json share_json(const ObservedShare& observed) { return {{"share", observed.share}, {"band", observed.band}}; }

Json levels_json(const Coverage& coverage) {
  Json levels = Json::array();
  for (std::size_t i = 0; i < coverage_levels.size(); ++i) {
    Json level = share_json(coverage.at[i]);
    level["level"] = coverage_levels[i];
    levels.push_back(std::move(level));
  }
  return levels;
}

}  // namespace commfuse::reports
