// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/uncovered.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "model/config/implementation.h"
#include "model/strategies/scope.h"
#include "model/text/counted.h"

namespace commfuse::sim {

std::string uncovered_in_words(const Settings& settings, const Library& library) {
  if (settings.text("as") != "all") {
    return "";
  }
  const RunChoices run = choices_of(settings);
  const std::vector<Candidates> implementations = implementations_of(settings, library);
  if (implementations.empty()) {
    return fmt::format("--as all: no implementation covers scope {}{}; only ideal schedules are compared\n",
                       name_of(run.scope.layer),
                       is_backward(run.scope.layer) ? " (all were measured in forward passes only)" : "");
  }
  const Machine& machine = library.machine(run.machine);
  const bool has_experts = is_expert_gemm(run.scope.layer, library.model(run.model));
  const bool is_refused = std::ranges::all_of(implementations, [&](const Candidates& candidate) {
    return (has_experts && !candidate.implementation->experts) ||
           !refusal_of(*candidate.implementation, machine, run.ranks, run.dtype).empty();
  });
  return is_refused
             ? fmt::format("--as all: no implementation runs {} with {} on {}; only ideal schedules are compared\n",
                           name_of(run.scope.layer), counted(run.ranks, "rank"), machine.name)
             : "";
}

std::string uncovered_in_words(const PointList& points, const Library& library) {
  std::string text;
  std::set<std::array<std::string, 6>> seen;  // values of the settings on which a line depends
  std::set<std::string> lines;
  PointCursor cursor(points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Settings& settings = cursor.at(i);
    if (seen.insert({settings.text("as"), settings.text("scope"), settings.text("model"), settings.text("hardware"),
                     settings.text("ranks"), settings.text("dtype")})
            .second) {
      const std::string line = uncovered_in_words(settings, library);
      text += lines.insert(line).second ? line : "";
    }
  }
  return text;
}

}  // namespace commfuse::sim
