// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/scaling.h"

#include <algorithm>
#include <map>
#include <utility>

namespace commfuse {

namespace {

using Points = std::vector<const ScalingPoint*>;

std::int64_t tokens_of(const ScalingPoint& point) { return point.batch * point.seq; }

/// Returns nullopt when all points have the same number of ranks.
std::optional<Scaling> scaling_of(ScalingKind kind, const Points& points) {
  const auto [fewest_ranks, max_ranks] = std::minmax_element(
      points.begin(), points.end(), [](const auto* a, const auto* b) { return a->ranks < b->ranks; });
  if ((*fewest_ranks)->ranks == (*max_ranks)->ranks) {
    return std::nullopt;
  }
  const double speedup = to_seconds((*fewest_ranks)->time) / to_seconds((*max_ranks)->time);
  const double ideal = kind == ScalingKind::weak
                           ? 1.0
                           : static_cast<double>((*max_ranks)->ranks) / static_cast<double>((*fewest_ranks)->ranks);
  return Scaling{(*fewest_ranks)->setting, kind, **fewest_ranks, **max_ranks, speedup / ideal};
}

std::vector<Scaling> strong_of(const Points& points) {
  std::map<std::pair<std::int64_t, std::int64_t>, Points> by_work;
  for (const ScalingPoint* point : points) {
    by_work[{point->batch, point->seq}].push_back(point);
  }
  std::vector<Scaling> scalings;
  for (const auto& [work, same_work] : by_work) {
    if (const std::optional<Scaling> scaling = scaling_of(ScalingKind::strong, same_work)) {
      scalings.push_back(*scaling);
    }
  }
  return scalings;
}

bool has_equal_tokens_per_rank(const Points& points) {
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
    Points& same_setting = by_setting[point.setting];
    if (same_setting.empty()) {
      settings.push_back(point.setting);
    }
    same_setting.push_back(&point);
  }
  std::vector<Scaling> scalings;
  for (const std::string& setting : settings) {
    const Points& same_setting = by_setting.at(setting);
    std::vector<Scaling> strong = strong_of(same_setting);
    if (strong.empty() && has_equal_tokens_per_rank(same_setting)) {
      if (const std::optional<Scaling> weak = scaling_of(ScalingKind::weak, same_setting)) {
        strong.push_back(*weak);
      }
    }
    scalings.insert(scalings.end(), strong.begin(), strong.end());
  }
  return scalings;
}

}  // namespace commfuse
