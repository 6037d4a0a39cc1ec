// SPDX-License-Identifier: Apache-2.0
// Runs ranks and lanes as threads of this process. Data is really moved and multiplied. Under emulation, ops only last
// as long as their price, so that more ranks than cores are timed correctly.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "model/cost/costs.h"
#include "validate/cpu/wall_clock.h"
#include "validate/executor.h"
#include "validate/reference/memory.h"

namespace commfuse::validate {

struct CpuOptions {
  /// Emulation: every op lasts as long as its cost in `costs`, from when it and the ranks that it waits for are ready,
  /// and is issued at the simulated time. Nothing is computed or moved, and there is no memory. If null, ops do real
  /// work.
  std::shared_ptr<const Costs> costs{};
  /// Factor by which emulation is slowed down; the reported times are divided by it.
  double dilation = 1.0;
  /// Time before a deadline at which a thread stops sleeping and watches the clock, because sleepers wake up late.
  std::chrono::nanoseconds watch{};
  /// For real work: transfers take at least as long as on a link of this pace. If it is not set, they take as long as
  /// the copy.
  std::optional<Pace> pace{};
  /// A run is given up when no op has ended for this long.
  std::chrono::nanoseconds patience = std::chrono::seconds(60);
};

class CpuExecutor final : public Executor {
 public:
  /// Throws std::runtime_error for fp8, which it does not store, except under emulation, which stores nothing.
  CpuExecutor(Lowered lowered, Sizes sizes, CpuOptions options);

  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] const Program& program() const override { return *lowered_.program; }
  [[nodiscard]] const Sizes& sizes() const override { return sizes_; }

  /// Aborts under emulation, as does fetch().
  void prepare(std::span<const Matrix<float>> tensors) override;
  /// Throws Stuck immediately when ops wait for each other in a cycle, and when no op has ended for
  /// CpuOptions::patience; std::runtime_error when a thread cannot start.
  Execution run(const RunOptions& options) override;
  [[nodiscard]] Matrix<float> fetch(Rank rank, const Rectangle& area) const override;

 private:
  Lowered lowered_;
  Sizes sizes_;
  CpuOptions options_;
  std::vector<std::vector<Command>> commands_;  // by rank
  std::vector<std::vector<Duration>> issued_;   // by rank and command; empty: without delay
  std::optional<Memory> memory_;
};

}  // namespace commfuse::validate
