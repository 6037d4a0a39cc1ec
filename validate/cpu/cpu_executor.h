// SPDX-License-Identifier: Apache-2.0
// Ranks and lanes are threads of this process. Data is really moved and multiplied, or ops just last as long as they
// are priced, so that more ranks than cores are timed honestly.
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
  /// Emulation: every op lasts as long as it costs here, from when it is posted on, and is issued when it would be.
  /// Nothing is computed or moved, and there is no memory. Null: the real thing.
  std::shared_ptr<const Costs> costs{};
  /// Emulation is played so many times slower; the times it gives are divided by it again.
  double dilation = 1.0;
  /// So long before a moment comes a thread stops sleeping for it and watches the clock, as sleepers wake up late.
  std::chrono::nanoseconds watch{};
  /// Of the real thing: what is moved takes as long as on such a link at least. Nothing: as long as copying takes.
  std::optional<Pace> pace{};
  /// A run is given up when no op has ended for so long.
  std::chrono::nanoseconds patience = std::chrono::seconds(60);
};

class CpuExecutor final : public Executor {
 public:
  /// Throws std::runtime_error for what it does not store: fp8.
  CpuExecutor(Lowered lowered, Sizes sizes, CpuOptions options);

  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] const Program& program() const override { return *lowered_.program; }
  [[nodiscard]] const Sizes& sizes() const override { return sizes_; }

  /// Aborts under emulation, as does fetch().
  void prepare(std::span<const Matrix<float>> tensors) override;
  /// Throws Stuck at once when the ops wait for each other in a circle, and when none has ended for options.patience.
  Execution run(const RunOptions& options) override;
  [[nodiscard]] Matrix<float> fetch(Rank rank, const Rectangle& area) const override;

 private:
  Lowered lowered_;
  Sizes sizes_;
  CpuOptions options_;
  std::vector<std::vector<Command>> commands_;  // by rank
  std::vector<std::vector<Duration>> issued_;   // by rank and command; empty: as fast as it can be
  std::optional<Memory> memory_;
};

}  // namespace commfuse::validate
