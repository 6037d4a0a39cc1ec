// SPDX-License-Identifier: Apache-2.0
// Warning that a GPU's memory cannot hold what a rank needs. Results include it among their warnings; tables and pages
// show it first.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace commfuse {

/// Peak memory that one GPU needs, and the memory that it has. 1 GB is 10^9 bytes.
struct MemoryNeed {
  double needed_gb = 0.0;
  double capacity_gb = 0.0;
  std::string hardware;
  std::string remedy;  ///< For example "use more ranks or fewer tokens".
};

/// Returns, for example, "use more GPUs, ZeRO or a smaller micro-batch". Requires at least one name.
std::string remedy_in_words(std::span<const std::string_view> names);

/// Returns, for example, "out of memory: a GPU needs 130.25 GB, but h100-sxm has 80.00 GB per GPU, so use more ranks or
/// fewer tokens".
std::string memory_warning(const MemoryNeed& need);

/// Returns true if memory_warning wrote `warning`.
bool is_memory_warning(std::string_view warning);

/// Largest memory need among rows of results.
class LargestNeed {
 public:
  /// Adds a row; `needed` is in GB, and `warning` is empty when the row fits.
  void add(double needed, std::optional<std::string> warning);

  /// Returns "Out of memory in 3 of 9 rows: a GPU needs up to 130.25 GB, but …"; empty when all rows fit.
  [[nodiscard]] std::string sentence() const;

 private:
  std::size_t rows_ = 0;
  std::size_t exceeding_rows_ = 0;
  double needed_ = 0.0;
  std::string warning_;
};

}  // namespace commfuse
