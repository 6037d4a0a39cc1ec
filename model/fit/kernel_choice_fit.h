// SPDX-License-Identifier: Apache-2.0
// Fits the table of model/hardware/kernel_choice.h to the error that the formula of a GEMM leaves.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "model/hardware/kernel_choice.h"

namespace commfuse {

/// A measured GEMM and its time relative to the formula.
struct ChoiceRow {
  KernelChoice::Shape shape;
  double log_ratio = 0.0;  ///< log(measured / formula)
};

/// Rows that a fit needs; with fewer, too many knots have no row nearby.
inline constexpr std::size_t min_choice_rows = 10 * KernelChoice::size;

/// Returns the table that is closest to the rows by Huber's loss, where each knot is drawn towards 1 with the weight of
/// one row. Factors are whole thousandths, as in a file; those far from all rows are 1.
KernelChoice fit_kernel_choice(std::span<const ChoiceRow> rows);

/// Returns the map `kernel_choice:` of a hardware file, indented by `indent` spaces.
std::string kernel_choice_yaml(const KernelChoice& choice, int indent);

}  // namespace commfuse
