// SPDX-License-Identifier: Apache-2.0
// Proves and runs one schedule: `commfuse-validate check` does this for every row of its table.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/program_text/load_schedule.h"
#include "model/strategies/generate.h"
#include "model/strategies/strategies.h"
#include "validate/reference/verify.h"

namespace commfuse::validate {

/// An operation whose schedules are checked. `scope` is the user's word; the scope mlp has two operations, one per
/// activation.
struct CheckedOperation {
  std::string_view scope;  // for example mlp
  std::string_view name;   // for example mlp_swiglu; see checked_operations()
  Operation operation;
};

std::span<const CheckedOperation> checked_operations();

/// With more ranks, integer data would not be exact in bf16.
inline constexpr std::int32_t max_ranks = 64;

/// Requires ranks <= max_ranks.
struct CheckPoint {
  const CheckedOperation* operation = nullptr;  // null: from a file
  const Strategy* strategy = nullptr;           // null: from a file
  StrategyOptions options;
  std::int32_t ranks = 1;
  std::uint64_t seed = 1;
  std::shared_ptr<const ScheduleFile> file{};  // null: generated
  std::optional<DType> wire{};                 // narrower dtype of transfers that do not sum; null: as in options
};

/// Returns the point of a schedule from a file. Throws ConfigError as require_runnable() does.
CheckPoint point_of(ScheduleFile file, std::uint64_t seed);

struct CheckResult {
  CheckPoint point;
  std::string executor = "reference";
  std::string parameters;             // the strategy's parameters in words; empty when there are none
  std::int64_t ops = 0;               // ops of one rank
  std::vector<std::string> findings;  // sentences; empty: proved; only a proved program is run
  Verdict verdict;                    // verdict of all sizes together

  [[nodiscard]] bool ok() const { return findings.empty() && verdict.ok(); }
};

/// Returns the program of a point.
Program program_of(const CheckPoint& point);

/// Returns two sets of sizes, in elements per block: small ones, mostly odd or different from each other, and larger
/// ones.
std::vector<Sizes> checked_sizes(const Program& program);

/// Throws ConfigError as sizes_for() does if the schedule is from a file.
CheckResult check_point(const CheckPoint& point);

class References;

/// Settings of a check, the same for all points.
struct CheckHow {
  std::string name = "reference";
  MakeExecutor executor{};
  MakeExecutor oracle{};      ///< VerifyOptions::oracle
  int orders = 4;             ///< VerifyOptions::orders
  std::uint64_t chaos = 1;    ///< VerifyOptions::chaos
  bool library_sums = false;  ///< VerifyOptions::library_sums
  /// Combines the verdicts where several processes each check their own ranks.
  std::function<Verdict(int ranks, const Verdict& mine)> together{};
};
/// `references`: see VerifyOptions::references.
CheckResult check_point(const CheckPoint& point, const CheckHow& how, References* references = nullptr);

}  // namespace commfuse::validate
