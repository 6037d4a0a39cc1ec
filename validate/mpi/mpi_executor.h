// SPDX-License-Identifier: Apache-2.0
// Runs ranks as processes that share nothing, on one machine or several. The lanes of a rank take turns in its process.
#pragma once

#include <vector>

#include "validate/executor.h"
#include "validate/mpi/crew.h"
#include "validate/reference/memory.h"
#include "validate/reference/verify.h"

namespace commfuse::validate {

/// Rank r is process r. The first processes, one per rank, must all make the same executors and call the same members
/// in the same order.
class MpiExecutor final : public Executor {
 public:
  /// Throws std::runtime_error for fp8, which cannot be stored. `crew` must outlive the executor. Requires that this
  /// process has a rank.
  MpiExecutor(Lowered lowered, Sizes sizes, Crew& crew);

  [[nodiscard]] std::string_view name() const override { return "mpi"; }
  [[nodiscard]] const Program& program() const override { return *lowered_.program; }
  [[nodiscard]] const Sizes& sizes() const override { return sizes_; }

  [[nodiscard]] bool holds(Rank rank) const override { return memory_.holds(rank); }
  void prepare(std::span<const Matrix<float>> tensors) override;
  /// Throws Stuck on all ranks when nothing has happened on any of them for the crew's patience, or when a process is
  /// lost. Each rank's clock starts when it receives the release; makespan and timeline cover all ranks on the leader,
  /// and are empty elsewhere.
  Execution run(const RunOptions& options) override;
  [[nodiscard]] Matrix<float> fetch(Rank rank, const Rectangle& area) const override;

 private:
  Lowered lowered_;
  Sizes sizes_;
  Crew& crew_;
  std::vector<Command> commands_;  // commands of this rank
  Memory memory_;
};

/// Returns the combined verdict of all ranks on the leader, and `mine` elsewhere. All ranks must call it.
Verdict of_all_ranks(Crew& crew, int ranks, const Verdict& mine);

}  // namespace commfuse::validate
