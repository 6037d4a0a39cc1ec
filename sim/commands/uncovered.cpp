// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/uncovered.h"

#include <fmt/format.h>

#include <set>

#include "model/strategies/scope.h"

namespace commfuse::sim {

std::string uncovered_in_words(const Settings& settings, const Library& library) {
  if (settings.text("as") != "all" || !implementations_of(settings, library).empty()) {
    return "";
  }
  const Scope scope = choices_of(settings).scope.layer;
  return fmt::format("--as all: no implementation covers scope {}{}; only ideal schedules are compared\n",
                     name_of(scope), is_backward(scope) ? " (all were measured in forward passes only)" : "");
}

std::string uncovered_in_words(const PointList& points, const Library& library) {
  std::string text;
  std::set<std::string> seen;
  PointCursor cursor(points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Settings& settings = cursor.at(i);
    if (seen.insert(settings.text("as") + " " + settings.text("scope")).second) {
      text += uncovered_in_words(settings, library);
    }
  }
  return text;
}

}  // namespace commfuse::sim
