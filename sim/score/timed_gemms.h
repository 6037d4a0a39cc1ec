// SPDX-License-Identifier: Apache-2.0
// The GEMMs of a table with their measured and predicted times, to compare GEMMs that do the same work.
#pragma once

#include <cstdint>
#include <vector>

#include "model/hardware/machine.h"

namespace commfuse::score {

struct TimedGemm {
  const Machine* machine = nullptr;
  std::int64_t n = 0;
  std::int64_t k = 0;
  int dtype = 0;
  std::int64_t m = 0;
  double measured_us = 0.0;
  double predicted_us = 0.0;
  bool held_out = false;
  bool unseen = false;    ///< Held out, or from a table that no fit of the machine uses.
  int weight_copies = 0;  ///< GemmSize::weight_copies, which all GEMMs of a table share.
};

/// A GEMM has a practical size if it has at least `min_slice_rows` rows after slicing and if n and k are at least
/// `min_width`.
inline constexpr std::int64_t min_slice_rows = 512;
inline constexpr std::int64_t min_width = 1024;

/// The GEMMs of a table, sorted. Only the first of repeated measurements is kept.
class DistinctGemms {
 public:
  explicit DistinctGemms(std::vector<TimedGemm> gemms);

  [[nodiscard]] const std::vector<TimedGemm>& list() const { return gemms_; }
  /// Returns the GEMM with the same machine, dtype and sizes; null if it was not measured.
  [[nodiscard]] const TimedGemm* find(const TimedGemm& gemm) const;
  /// Returns the GEMM with 1 / `parts` of the rows; null if it was not measured or does not have a practical size.
  [[nodiscard]] const TimedGemm* slice_of(const TimedGemm& whole, int parts) const;

 private:
  std::vector<TimedGemm> gemms_;
};

}  // namespace commfuse::score
