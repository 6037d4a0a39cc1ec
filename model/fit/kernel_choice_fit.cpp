// SPDX-License-Identifier: Apache-2.0
#include "model/fit/kernel_choice_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "model/check.h"
#include "model/fit/robust_fit.h"
#include "model/math/functions.h"
#include "model/text/yaml_quotes.h"

namespace commfuse {

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double huber = 1.345;    // default of robust_fit.h
constexpr double pull_to_1 = 1.0;  // weight that pulls every factor towards 1; a row weighs 1
constexpr int rounds = 10;

/// A row of a fit: the knots around it, and the logarithm of its time relative to the time that their factors multiply.
struct KnotRow {
  std::array<KernelChoice::Corner, 8> corners{};
  double log_ratio = 0.0;
};

double at_corners(const std::array<KernelChoice::Corner, 8>& corners, const VectorXd& logs) {
  double sum = 0.0;
  for (const KernelChoice::Corner& corner : corners) {
    sum += corner.weight * logs[static_cast<Eigen::Index>(corner.knot)];
  }
  return sum;
}

/// Returns the least-squares solution for this number of knots, with one weight per row.
VectorXd solve(std::span<const KnotRow> rows, std::size_t knots, const std::vector<double>& weights) {
  const auto size = static_cast<Eigen::Index>(knots);
  MatrixXd normal = pull_to_1 * MatrixXd::Identity(size, size);
  VectorXd right = VectorXd::Zero(size);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const KernelChoice::Corner& a : rows[i].corners) {
      const double weight = weights[i] * a.weight;
      right[static_cast<Eigen::Index>(a.knot)] += weight * rows[i].log_ratio;
      for (const KernelChoice::Corner& b : rows[i].corners) {
        normal(static_cast<Eigen::Index>(a.knot), static_cast<Eigen::Index>(b.knot)) += weight * b.weight;
      }
    }
  }
  return normal.ldlt().solve(right);
}

/// Returns the logarithms of the factors, by Huber's loss.
VectorXd fit_logs(std::span<const KnotRow> rows, std::size_t knots) {
  std::vector<double> weights(rows.size(), 1.0);
  VectorXd logs = VectorXd::Zero(static_cast<Eigen::Index>(knots));
  for (int round = 0; round < rounds && !rows.empty(); ++round) {
    logs = solve(rows, knots, weights);
    std::vector<double> sizes(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      sizes[i] = std::abs(rows[i].log_ratio - at_corners(rows[i].corners, logs));
    }
    const double threshold = std::max(1e-12, huber * normal_spread * quantile(sizes, 0.5));
    std::transform(sizes.begin(), sizes.end(), weights.begin(),
                   [&](double residual) { return residual <= threshold ? 1.0 : threshold / residual; });
  }
  return logs;
}

/// Writes the factors of these logarithms, in whole thousandths.
void set_factors(const VectorXd& logs, std::span<double> factors) {
  for (std::size_t i = 0; i < factors.size(); ++i) {
    factors[i] = std::round(1000.0 * math::exp(logs[static_cast<Eigen::Index>(i)])) / 1000.0;
  }
}

/// Narrow rows relative to the first table, by fold.
using FoldedRows = std::array<std::vector<KnotRow>, choice_folds>;

std::vector<KnotRow> joined(const FoldedRows& folds, int without) {
  std::vector<KnotRow> rows;
  for (int fold = 0; fold < choice_folds; ++fold) {
    if (fold != without) {
      rows.insert(rows.end(), folds[fold].begin(), folds[fold].end());
    }
  }
  return rows;
}

/// Returns whether a table of narrow GEMMs, fitted to the other folds, lowers the mean error of a fold's rows by more
/// than a tenth.
bool pays(const FoldedRows& folds) {
  double before = 0.0;
  double after = 0.0;
  for (int fold = 0; fold < choice_folds; ++fold) {
    const VectorXd logs = fit_logs(joined(folds, fold), KernelChoice::narrow_size);
    for (const KnotRow& row : folds[fold]) {
      before += std::abs(row.log_ratio);
      after += std::abs(row.log_ratio - at_corners(row.corners, logs));
    }
  }
  return after < 0.9 * before;
}

/// Fits the table of narrow GEMMs to what the first table leaves, if there are enough rows and it pays.
void fit_narrow(std::span<const ChoiceRow> rows, KernelChoice& choice) {
  FoldedRows folds;
  std::size_t count = 0;
  for (const ChoiceRow& row : rows) {
    if (row.shape.n < KernelChoice::tile_width) {
      folds[row.fold].push_back({.corners = KernelChoice::narrow_corners(row.shape),
                                 .log_ratio = row.log_ratio - math::log(choice.table_factor(row.shape))});
      ++count;
    }
  }
  if (count >= min_narrow_rows && pays(folds)) {
    set_factors(fit_logs(joined(folds, choice_folds), KernelChoice::narrow_size), choice.narrow);
  }
}

/// Returns the factors in thousandths: "[1000, 1234, ...]".
std::string row_yaml(std::span<const double, KernelChoice::k_knots.size()> factors) {
  std::array<int, KernelChoice::k_knots.size()> row{};
  std::ranges::transform(factors, row.begin(),
                         [](double factor) { return static_cast<int>(std::lround(1000.0 * factor)); });
  return fmt::format("[{}]", fmt::join(row, ", "));
}

/// Returns the map `narrow:` with one row for each m and n; empty if all factors are 1.
std::string narrow_yaml(const KernelChoice& choice, int indent) {
  if (std::ranges::all_of(choice.narrow, [](double factor) { return factor == 1.0; })) {
    return "";
  }
  std::string text = fmt::format(
      "{0:{1}}  # Further factors of fewer than 128 columns, by m and n, with the same columns of k.\n{0:{1}}  "
      "narrow:\n",
      "", indent);
  std::size_t first = 0;
  for (const int log2_of_m : KernelChoice::m_knots) {
    text += fmt::format("{:{}}    {}:\n", "", indent, m_key(log2_of_m));
    for (std::size_t n = 0; n + 1 < KernelChoice::narrow_knots.size(); ++n) {
      const std::span<const double> factors(choice.narrow);
      text += fmt::format("{:{}}      {}: {}\n", "", indent, n_key(KernelChoice::narrow_knots[n]),
                          row_yaml(factors.subspan(first).first<KernelChoice::k_knots.size()>()));
      first += KernelChoice::k_knots.size();
    }
  }
  return text;
}

}  // namespace

KernelChoice fit_kernel_choice(std::span<const ChoiceRow> rows) {
  std::vector<KnotRow> knot_rows;
  knot_rows.reserve(rows.size());
  for (const ChoiceRow& row : rows) {
    check(row.fold >= 0 && row.fold < choice_folds, "a row of kernel choice is in one of the folds");
    knot_rows.push_back({.corners = KernelChoice::corners(row.shape), .log_ratio = row.log_ratio});
  }
  KernelChoice choice;
  set_factors(fit_logs(knot_rows, KernelChoice::size), choice.factors);
  fit_narrow(rows, choice);
  return choice;
}

std::string kernel_choice_yaml(const KernelChoice& choice, int indent) {
  std::string text = fmt::format(
      "{0:{1}}# Time of the kernel that the library chooses, in thousandths of the formula's time, by m and by tiles "
      "of\n"
      "{0:{1}}# 128 x 128 per SM. The columns are k of 32, 64, 256, 1K, 2K, 4K, 8K, 16K and 64K. Other sizes are "
      "interpolated.\n"
      "{0:{1}}kernel_choice:\n{0:{1}}  provenance: {2}\n",
      "", indent, yaml_quoted(fmt::format("{}: {}", name_of(choice.provenance), choice.source)));
  const std::span<const double> factors(choice.factors);
  std::size_t first = 0;
  for (const int log2_of_m : KernelChoice::m_knots) {
    text += fmt::format("{:{}}  {}:\n", "", indent, m_key(log2_of_m));
    for (const int log2_of_tiles : KernelChoice::tiles_knots) {
      text += fmt::format("{:{}}    {}: {}\n", "", indent, tiles_key(log2_of_tiles),
                          row_yaml(factors.subspan(first).first<KernelChoice::k_knots.size()>()));
      first += KernelChoice::k_knots.size();
    }
  }
  return text + narrow_yaml(choice, indent);
}

}  // namespace commfuse
