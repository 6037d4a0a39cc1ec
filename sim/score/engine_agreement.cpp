// SPDX-License-Identifier: Apache-2.0
#include "sim/score/engine_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "model/analysis/verdict.h"
#include "model/check.h"
#include "model/config/catalogue.h"
#include "model/config/resolver.h"
#include "model/text/quantity.h"
#include "sim/parallel/run_points.h"
#include "sim/point/grid.h"

namespace commfuse::score {

namespace {

constexpr std::array<std::int64_t, 3> rank_counts{4, 8, 16};
constexpr std::size_t sides = 2;

std::vector<std::int64_t> ranks_on(const std::string& machine) {
  const int gpus = total_gpus(load_machine(machine));
  std::vector<std::int64_t> ranks;
  std::copy_if(rank_counts.begin(), rank_counts.end(), std::back_inserter(ranks),
               [&](std::int64_t count) { return count <= gpus; });
  return ranks;
}

/// Returns the points on a machine in pairs: static interference, then dynamic.
std::vector<Settings> points_on(const std::string& machine) {
  const std::vector<std::int64_t> ranks = ranks_on(machine);
  if (ranks.empty()) {
    return {};
  }
  Resolver resolver;
  for (const auto& [key, value] :
       {std::pair{"model", "llama-3.1-70b"}, std::pair{"scope", "mlp"}, std::pair{"hardware", machine.c_str()}}) {
    resolver.read_flag(*find_field(key), value);
  }
  Grid grid{.settings = resolver.finish()};
  grid.axes = {parse_axis(fmt::format("ranks={}", fmt::join(ranks, ","))), parse_axis("seq=2K,8K,32K"),
               parse_axis("interference=static,dynamic")};
  return points_of(grid);
}

/// The rows that have a time and are not lower bounds, and the verdict on them.
struct Side {
  explicit Side(const std::vector<ResultRow>& rows) {
    std::vector<Contender> contenders;
    for (const ResultRow& row : rows) {
      if (row.feasible() && !row.bound) {
        competing.push_back(&row);
        contenders.push_back({to_seconds(row.analysis.critical.makespan), row.makespan_error, row.win_probability});
      }
    }
    verdict = verdict_of(contenders, {});
  }
  [[nodiscard]] const std::string& fastest() const { return competing[verdict.order.front()]->strategy; }
  [[nodiscard]] bool in_front(std::string_view strategy) const {
    return std::ranges::any_of(verdict.front,
                               [&](std::size_t contender) { return competing[contender]->strategy == strategy; });
  }
  std::vector<const ResultRow*> competing;
  Verdict verdict;
};

std::string side_in_words(const Side& side) {
  return fmt::format("{}{}", side.fastest(), side.verdict.wins() ? " wins" : " is the fastest");
}

void compare_verdicts(const std::vector<ResultRow>& fixed, const std::vector<ResultRow>& dynamic,
                      EngineAgreement& machine) {
  const Side fixed_side(fixed);
  const Side dynamic_side(dynamic);
  if (!fixed_side.verdict.wins() && !dynamic_side.verdict.wins()) {
    return;
  }
  ++machine.winners;
  const bool agree = (!fixed_side.verdict.wins() || dynamic_side.in_front(fixed_side.fastest())) &&
                     (!dynamic_side.verdict.wins() || fixed_side.in_front(dynamic_side.fastest()));
  if (!agree) {
    machine.conflicts.push_back(fmt::format("{} ranks, seq {}: {}, dynamic {}", fixed.front().ranks,
                                            format_count(fixed.front().seq), side_in_words(fixed_side),
                                            side_in_words(dynamic_side)));
  }
}

void compare(const std::vector<ResultRow>& fixed, const std::vector<ResultRow>& dynamic, EngineAgreement& machine) {
  ++machine.points;
  for (const ResultRow& row : fixed) {
    const auto dynamic_row = std::ranges::find(dynamic, row.strategy, &ResultRow::strategy);
    if (dynamic_row != dynamic.end() && row.feasible() && dynamic_row->feasible()) {
      machine.differences.push_back(std::abs(
          to_seconds(row.analysis.critical.makespan) / to_seconds(dynamic_row->analysis.critical.makespan) - 1.0));
    }
  }
  compare_verdicts(fixed, dynamic, machine);
}

}  // namespace

std::vector<EngineAgreement> engine_agreement(const std::vector<std::string>& machines,
                                              const std::function<void()>& finished) {
  std::vector<Settings> points;
  std::vector<std::size_t> machine_of;  // by point
  Library library;
  for (std::size_t machine = 0; machine < machines.size(); ++machine) {
    for (Settings& point : points_on(machines[machine])) {
      library.load(point);
      points.push_back(std::move(point));
      machine_of.push_back(machine);
    }
  }
  GridOptions options;
  options.finished = [&](bool /*feasible*/) {
    if (finished) {
      finished();
    }
  };
  const std::vector<std::vector<ResultRow>> rows = run_points(points, library, options);
  std::vector<EngineAgreement> agreements(machines.size());
  for (std::size_t machine = 0; machine < machines.size(); ++machine) {
    agreements[machine].machine = machines[machine];
    agreements[machine].ranks = ranks_on(machines[machine]);
  }
  for (std::size_t point = 0; point < points.size(); point += sides) {
    check(rows[point].front().interference == "static" && rows[point + 1].front().interference == "dynamic",
          "both sides of a point are adjacent");
    compare(rows[point], rows[point + 1], agreements[machine_of[point]]);
  }
  return agreements;
}

std::size_t runs_of_engine_agreement(const std::vector<std::string>& machines) {
  std::size_t runs = 0;
  for (const std::string& machine : machines) {
    runs += points_on(machine).size();
  }
  return runs;
}

}  // namespace commfuse::score
