// SPDX-License-Identifier: Apache-2.0
#include "model/record/reliability.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/analysis/median.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

/// Half widths in standard errors: share_below(z) = (1 + level) / 2.
constexpr std::array<double, coverage_levels.size()> half_widths{0.648808520437614, 0.993666938968772,
                                                                 1.867376541509181, 2.432008008965769};

constexpr double two_sided_95 = 1.959963984540054;

/// Counts of yes and no by shape, for the design effect.
class ClusteredShare {
 public:
  /// Requires the rows of each shape to be added one after another.
  void add(const ShapeKey& shape, bool yes) {
    if (clusters_.empty() || shape != last_) {
      clusters_.push_back({});
      last_ = shape;
    }
    clusters_.back().rows += 1.0;
    clusters_.back().yes += yes ? 1.0 : 0.0;
  }

  [[nodiscard]] ObservedShare observed(double promised) const {
    double rows = 0.0;
    double yes = 0.0;
    for (const Cluster& cluster : clusters_) {
      rows += cluster.rows;
      yes += cluster.yes;
    }
    if (rows == 0.0) {
      return {};
    }
    const double share = yes / rows;
    const double variance = design_effect(share, rows) * promised * (1.0 - promised) / rows;
    return {share, two_sided_95 * std::sqrt(variance)};
  }

 private:
  struct Cluster {
    double rows = 0.0;
    double yes = 0.0;
  };

  [[nodiscard]] double design_effect(double share, double rows) const {
    double largest_effect = 0.0;
    double squares = 0.0;
    for (const Cluster& cluster : clusters_) {
      largest_effect += cluster.rows * cluster.rows / rows;
      squares += (cluster.yes - share * cluster.rows) * (cluster.yes - share * cluster.rows);
    }
    const auto count = static_cast<double>(clusters_.size());
    const double independent = share * (1.0 - share) * rows;
    if (independent == 0.0 || count < 2.0) {
      return largest_effect;
    }
    return std::max(1.0, count / (count - 1.0) * squares / independent);
  }

  std::vector<Cluster> clusters_;
  ShapeKey last_{};
};

/// Returns the coverage of the held-out rows with the residuals of `scope` instead of the residuals of the hardware
/// file.
Coverage coverage_with(const FitRows& fit, const FitScope& scope) {
  std::vector<CheckedTime> times;
  for (const FitRow& row : fit.rows) {
    if (row.held_out) {
      const double residual = math::log1p(scope.residual_at(row.limit));
      times.push_back({row.distance, std::sqrt(row.parameters * row.parameters + residual * residual), row.shape});
    }
  }
  return coverage_of(std::move(times));
}

/// Returns the smallest residual with which a 68% interval contains the measured time of this row.
double residual_needed(const FitRow& row) {
  const double scaled = row.distance / half_widths[1];
  return math::expm1(std::sqrt(std::max(0.0, scaled * scaled - row.parameters * row.parameters)));
}

/// Returns the ceil(0.68 (n + 1))-th smallest of n residuals, limited to [least_residual, 1]. Requires at least one
/// residual.
double conformal(std::vector<double> needed) {
  const auto rank = static_cast<std::size_t>(std::ceil(coverage_levels[1] * static_cast<double>(needed.size() + 1)));
  const auto chosen = needed.begin() + static_cast<std::ptrdiff_t>(std::min(rank, needed.size()) - 1);
  std::nth_element(needed.begin(), chosen, needed.end());
  return std::clamp(*chosen, least_residual, 1.0);
}

std::size_t bin_of(double probability) {
  std::size_t bin = 0;
  while (bin + 2 < probability_edges.size() && probability >= probability_edges[bin + 1]) {
    ++bin;
  }
  return bin;
}

}  // namespace

Coverage coverage_of(std::vector<CheckedTime> times) {
  Coverage coverage{.n = static_cast<std::int64_t>(times.size())};
  if (times.empty()) {
    return coverage;
  }
  std::sort(times.begin(), times.end(), [](const CheckedTime& a, const CheckedTime& b) { return a.shape < b.shape; });
  for (std::size_t level = 0; level < coverage_levels.size(); ++level) {
    ClusteredShare inside;
    for (const CheckedTime& time : times) {
      inside.add(time.shape, std::abs(time.distance) <= half_widths[level] * time.error);
    }
    coverage.at[level] = inside.observed(coverage_levels[level]);
  }
  std::vector<double> errors;
  for (std::size_t i = 0; i < times.size(); ++i) {
    errors.push_back(times[i].error);
    coverage.shapes += i == 0 || times[i].shape != times[i - 1].shape ? 1 : 0;
  }
  coverage.median_error = median(std::move(errors));
  return coverage;
}

NewResidual new_residual(const FitRows& fit) {
  NewResidual calibrated{.residual = fit.residual};
  std::vector<double> needed;
  std::array<std::vector<double>, all_limits.size()> by_limit;
  for (const FitRow& row : fit.rows) {
    if (!row.held_out) {
      needed.push_back(residual_needed(row));
      by_limit[static_cast<std::size_t>(row.limit)].push_back(needed.back());
    }
  }
  calibrated.read = static_cast<std::int64_t>(needed.size());
  calibrated.enough = calibrated.read >= least_rows_for_residual;
  if (!needed.empty()) {
    calibrated.residual = conformal(std::move(needed));
  }
  for (std::size_t i = 0; i < by_limit.size(); ++i) {
    calibrated.read_by_limit[i] = static_cast<std::int64_t>(by_limit[i].size());
    if (calibrated.read_by_limit[i] >= least_rows_for_limit) {
      calibrated.by_limit[i] = conformal(std::move(by_limit[i])) / calibrated.residual;
    }
  }
  calibrated.now = coverage_with(fit, {.residual = fit.residual, .by_limit = fit.by_limit});
  calibrated.then = coverage_with(fit, {.residual = calibrated.residual, .by_limit = calibrated.by_limit});
  calibrated.held_out = calibrated.now.n;
  return calibrated;
}

double beyond_chance(const Coverage& coverage) {
  double worst = 0.0;
  for (std::size_t level = 0; coverage.n > 0 && level < coverage_levels.size(); ++level) {
    const ObservedShare& observed = coverage.at[level];
    worst = std::max(worst, std::abs(observed.share - coverage_levels[level]) - observed.band);
  }
  return worst;
}

Reliability reliability_of(std::span<const JudgedPair> pairs) {
  Reliability reliability{.n = static_cast<std::int64_t>(pairs.size())};
  std::array<std::vector<JudgedPair>, probability_edges.size() - 1> by_bin;
  for (const JudgedPair& pair : pairs) {
    const double miss = pair.probability - (pair.came_true ? 1.0 : 0.0);
    reliability.brier += miss * miss / static_cast<double>(pairs.size());
    by_bin[bin_of(pair.probability)].push_back(pair);
  }
  for (std::size_t i = 0; i < by_bin.size(); ++i) {
    ReliabilityBin& bin = reliability.bins[i];
    bin = {
        .from = probability_edges[i], .to = probability_edges[i + 1], .n = static_cast<std::int64_t>(by_bin[i].size())};
    std::stable_sort(by_bin[i].begin(), by_bin[i].end(),
                     [](const JudgedPair& a, const JudgedPair& b) { return a.shape < b.shape; });
    ClusteredShare came_true_share;
    for (const JudgedPair& pair : by_bin[i]) {
      bin.said += pair.probability / static_cast<double>(bin.n);
      came_true_share.add(pair.shape, pair.came_true);
    }
    bin.observed = came_true_share.observed(bin.said);
  }
  return reliability;
}

}  // namespace commfuse
