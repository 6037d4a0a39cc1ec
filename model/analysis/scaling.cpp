// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/scaling.h"

#include <algorithm>
#include <map>
#include <utility>

namespace commfuse {

namespace {

using Points = std::vector<const ScalingPoint*>;

std::int64_t tokens_of(const ScalingPoint& point) { return point.batch * point.seq; }

/// Returns nullopt when all points have the same ranks.
std::optional<Scaling> scaling_of(ScalingKind kind, const Points& points) {
  const auto [fewest, most] = std::minmax_element(points.begin(), points.end(),
                                                  [](const auto* a, const auto* b) { return a->ranks < b->ranks; });
  if ((*fewest)->ranks == (*most)->ranks) {
    return std::nullopt;
  }
  const double times = to_seconds((*fewest)->time) / to_seconds((*most)->time);
  const double ideal =
      kind == ScalingKind::weak ? 1.0 : static_cast<double>((*most)->ranks) / static_cast<double>((*fewest)->ranks);
  return Scaling{(*fewest)->setting, kind, **fewest, **most, times / ideal};
}

std::vector<Scaling> strong_of(const Points& points) {
  std::map<std::pair<std::int64_t, std::int64_t>, Points> by_work;
  for (const ScalingPoint* point : points) {
    by_work[{point->batch, point->seq}].push_back(point);
  }
  std::vector<Scaling> all;
  for (const auto& [work, some] : by_work) {
    if (const std::optional<Scaling> scaling = scaling_of(ScalingKind::strong, some)) {
      all.push_back(*scaling);
    }
  }
  return all;
}

bool has_as_many_tokens_a_rank(const Points& points) {
  const ScalingPoint& first = *points.front();
  return std::all_of(points.begin(), points.end(), [&](const ScalingPoint* point) {
    return tokens_of(*point) * first.ranks == tokens_of(first) * point->ranks;
  });
}

}  // namespace

std::vector<Scaling> scalings_of(std::span<const ScalingPoint> points) {
  std::vector<std::string> settings;
  std::map<std::string, Points> by_setting;
  for (const ScalingPoint& point : points) {
    Points& some = by_setting[point.setting];
    if (some.empty()) {
      settings.push_back(point.setting);
    }
    some.push_back(&point);
  }
  std::vector<Scaling> all;
  for (const std::string& setting : settings) {
    const Points& some = by_setting.at(setting);
    std::vector<Scaling> strong = strong_of(some);
    if (strong.empty() && has_as_many_tokens_a_rank(some)) {
      if (const std::optional<Scaling> weak = scaling_of(ScalingKind::weak, some)) {
        strong.push_back(*weak);
      }
    }
    all.insert(all.end(), strong.begin(), strong.end());
  }
  return all;
}

}  // namespace commfuse
