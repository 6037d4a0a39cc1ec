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
  int fold = 0;            ///< from 0 to choice_folds - 1
};

inline constexpr int choice_folds = 5;

/// Rows with fewer than 128 columns that a table of narrow GEMMs needs.
inline constexpr std::size_t min_narrow_rows = 10 * KernelChoice::narrow_size;

/// Rows that a fit needs; with fewer, too many knots have no row nearby.
inline constexpr std::size_t min_choice_rows = 10 * KernelChoice::size;

/// Returns the table that is closest to the rows by Huber's loss, where each knot is drawn towards 1 with the weight of
/// one row. Factors are whole thousandths, as in a file; those far from all rows are 1. The table of narrow GEMMs is
/// fitted to the error that the first table leaves in their rows, and kept only if it lowers the mean error by more
/// than a tenth on folds that it has not seen. Rows of equal `fold` are left out together.
KernelChoice fit_kernel_choice(std::span<const ChoiceRow> rows);

/// Returns the map `kernel_choice:` of a hardware file, indented by `indent` spaces.
std::string kernel_choice_yaml(const KernelChoice& choice, int indent);

}  // namespace commfuse
