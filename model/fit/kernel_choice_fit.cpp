// SPDX-License-Identifier: Apache-2.0
#include "model/fit/kernel_choice_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

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

double at_corners(const std::array<KernelChoice::Corner, 8>& corners, const VectorXd& logs) {
  double sum = 0.0;
  for (const KernelChoice::Corner& corner : corners) {
    sum += corner.weight * logs[static_cast<Eigen::Index>(corner.knot)];
  }
  return sum;
}

/// Returns the least-squares solution with these weights.
VectorXd solve(std::span<const ChoiceRow> rows, const std::vector<std::array<KernelChoice::Corner, 8>>& corners,
               const std::vector<double>& weights) {
  constexpr auto size = static_cast<Eigen::Index>(KernelChoice::size);
  MatrixXd normal = pull_to_1 * MatrixXd::Identity(size, size);
  VectorXd right = VectorXd::Zero(size);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const KernelChoice::Corner& a : corners[i]) {
      const double weight = weights[i] * a.weight;
      right[static_cast<Eigen::Index>(a.knot)] += weight * rows[i].log_ratio;
      for (const KernelChoice::Corner& b : corners[i]) {
        normal(static_cast<Eigen::Index>(a.knot), static_cast<Eigen::Index>(b.knot)) += weight * b.weight;
      }
    }
  }
  return normal.ldlt().solve(right);
}

}  // namespace

KernelChoice fit_kernel_choice(std::span<const ChoiceRow> rows) {
  std::vector<std::array<KernelChoice::Corner, 8>> corners;
  corners.reserve(rows.size());
  for (const ChoiceRow& row : rows) {
    corners.push_back(KernelChoice::corners(row.shape));
  }
  std::vector<double> weights(rows.size(), 1.0);
  VectorXd logs = VectorXd::Zero(static_cast<Eigen::Index>(KernelChoice::size));
  for (int round = 0; round < rounds && !rows.empty(); ++round) {
    logs = solve(rows, corners, weights);
    std::vector<double> sizes(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      sizes[i] = std::abs(rows[i].log_ratio - at_corners(corners[i], logs));
    }
    const double threshold = std::max(1e-12, huber * normal_spread * quantile(sizes, 0.5));
    std::transform(sizes.begin(), sizes.end(), weights.begin(),
                   [&](double residual) { return residual <= threshold ? 1.0 : threshold / residual; });
  }
  KernelChoice choice;
  for (std::size_t i = 0; i < KernelChoice::size; ++i) {
    choice.factors[i] = std::round(1000.0 * math::exp(logs[static_cast<Eigen::Index>(i)])) / 1000.0;
  }
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
  std::size_t knot = 0;
  for (const int log2_of_m : KernelChoice::m_knots) {
    text += fmt::format("{:{}}  {}:\n", "", indent, m_key(log2_of_m));
    for (const int log2_of_tiles : KernelChoice::tiles_knots) {
      std::array<int, KernelChoice::k_knots.size()> row{};
      for (int& factor : row) {
        factor = static_cast<int>(std::lround(1000.0 * choice.factors[knot++]));
      }
      text += fmt::format("{:{}}    {}: [{}]\n", "", indent, tiles_key(log2_of_tiles), fmt::join(row, ", "));
    }
  }
  return text;
}

}  // namespace commfuse
