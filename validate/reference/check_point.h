// SPDX-License-Identifier: Apache-2.0
// One schedule, proved and run: what `commfuse-validate check` does for every row.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/program_text/load_schedule.h"
#include "model/strategies/generate.h"
#include "model/strategies/strategies.h"
#include "validate/reference/verify.h"

namespace commfuse::validate {

/// An operation to check schedules of. `scope` is what a user asks for; the MLP has two kinds of activation.
struct CheckedOperation {
  std::string_view scope;  // ag_gemm, gemm_rs, attention, mlp, layer, ag_gemm_backward
  std::string_view name;   // ag_gemm, gemm_rs, mlp_swiglu, mlp_gelu, ag_gemm_backward
  Operation operation;
};

std::span<const CheckedOperation> checked_operations();

/// Beyond, integer data would not be exact in bf16.
inline constexpr std::int32_t most_ranks = 64;

/// Requires ranks <= most_ranks.
struct CheckPoint {
  const CheckedOperation* operation = nullptr;  // null: of a file
  const Strategy* strategy = nullptr;           // null: of a file
  StrategyOptions options;
  std::int32_t ranks = 1;
  std::uint64_t seed = 1;
  std::shared_ptr<const ScheduleFile> file{};  // null: generated
};

/// Of a schedule from a file. Throws ConfigError as require_runnable.
CheckPoint point_of(ScheduleFile file, std::uint64_t seed);

struct CheckResult {
  CheckPoint point;
  std::string executor = "reference";
  std::string parameters;             // of the strategy, in words; empty when there are none
  std::int64_t ops = 0;               // of one rank
  std::vector<std::string> findings;  // sentences; empty: proved, and only then is it run
  Verdict verdict;                    // of all sizes together

  [[nodiscard]] bool ok() const { return findings.empty() && verdict.ok(); }
};

/// The program of a point.
Program program_of(const CheckPoint& point);

/// Elements a block: deliberately awkward ones, where no two dimensions agree, and larger ones.
std::vector<Sizes> checked_sizes(const Program& program);

/// Of a file it throws ConfigError as sizes_for.
CheckResult check_point(const CheckPoint& point);

class References;

/// Who is to run the points, and in how many orders.
struct CheckHow {
  std::string name = "reference";
  MakeExecutor executor{};
  MakeExecutor oracle{};  ///< As VerifyOptions.
  int orders = 4;
  std::uint64_t chaos = 1;
  bool library_sums = false;  ///< As VerifyOptions.
  /// Where several processes each look at their own ranks: what they found together.
  std::function<Verdict(int ranks, const Verdict& mine)> together{};
};
/// `references`: as VerifyOptions.
CheckResult check_point(const CheckPoint& point, const CheckHow& how, References* references = nullptr);

}  // namespace commfuse::validate
