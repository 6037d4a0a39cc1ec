// SPDX-License-Identifier: Apache-2.0
#include "sim/score/implementation_residuals.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "model/math/functions.h"

namespace commfuse::score {

namespace {

constexpr double assumed_residual = 0.2;  // without any held-out time
constexpr double share_within_one_error = 0.6827;

using Source = std::pair<std::size_t, std::string>;  // implementation and thread

double squared(double value) { return value * value; }

struct MeanSquare {
  double sum = 0.0;
  double count = 0.0;
  void add(double value) {
    sum += value;
    count += 1.0;
  }
  [[nodiscard]] double value() const { return sum / count; }
};

/// Residual that a time needs to be one standard error off, and the weight of the time.
struct NeededResidual {
  double residual = 0.0;
  double weight = 0.0;
};

}  // namespace

double residual_where_measured(std::size_t implementation, std::span<const HeldOutTime> times) {
  std::map<Source, MeanSquare> sources;
  for (const HeldOutTime& time : times) {
    if (!time.is_elsewhere) {
      sources[{time.implementation, time.thread}].add(squared(time.log_ratio));
    }
  }
  MeanSquare all_sources;
  MeanSquare own_sources;
  for (const auto& [source, squares] : sources) {
    all_sources.add(squares.value());
    if (source.first == implementation) {
      own_sources.add(squares.value());
    }
  }
  own_sources.add(all_sources.count == 0.0 ? squared(assumed_residual) : all_sources.value());
  return std::sqrt(own_sources.value());
}

double residual_elsewhere(std::span<const HeldOutTime> times) {
  std::map<Source, double> rows;
  for (const HeldOutTime& time : times) {
    rows[{time.implementation, time.thread}] += time.is_elsewhere ? 1.0 : 0.0;
  }
  std::erase_if(rows, [](const auto& source) { return source.second == 0.0; });
  if (rows.empty()) {
    return assumed_residual;
  }
  const auto sources = static_cast<double>(rows.size());
  std::vector<NeededResidual> needed;
  for (const HeldOutTime& time : times) {
    if (time.is_elsewhere) {
      const double unexplained = std::max(0.0, squared(time.log_ratio) - squared(time.stated_error));
      needed.push_back({math::exp(std::sqrt(unexplained)) - 1.0, 1.0 / rows.at({time.implementation, time.thread})});
    }
  }
  std::ranges::sort(needed, {}, &NeededResidual::residual);
  const double wanted = share_within_one_error * (sources + 1.0);
  double covered = 0.0;
  for (const NeededResidual& time : needed) {
    covered += time.weight;
    if (covered >= wanted) {
      return time.residual;
    }
  }
  return needed.back().residual;
}

}  // namespace commfuse::score
