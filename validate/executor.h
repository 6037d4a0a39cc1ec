// SPDX-License-Identifier: Apache-2.0
// The interface of executors, which run the lowered commands of a program. All executors take the same commands, and
// their results must match an oracle bit for bit (T1; verify.h states the exceptions).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>

#include "model/program/lower.h"
#include "model/program/recorder.h"
#include "model/program/sizes.h"
#include "validate/values/arithmetic.h"
#include "validate/values/matrix.h"

namespace commfuse::validate {

struct RunOptions {
  Functions functions = Functions::real;
  SumOrder sum_order = SumOrder::ascending;
  /// Seed of a random order; 0 means the usual order. With a seed, the interpreter runs ops in a random allowed order
  /// and lets lanes fall far behind, and threads yield and wait at random. A correct program produces the same bits in
  /// every order.
  std::uint64_t order = 0;
  /// Number of iterations, one after another. Between two of them a rank joins its lanes, but waits for no other rank.
  int iterations = 1;
  bool traced = false;
};

struct Execution {
  Duration makespan{};  ///< From the common release to the last end, over all iterations; 0: not timed.
  Timeline timeline;    ///< The last iteration, if requested; time zero is the release.
};

/// The run cannot finish; what() states where ranks wait.
class Stuck : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs one program at one size.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual const Program& program() const = 0;
  [[nodiscard]] virtual const Sizes& sizes() const = 0;

  /// Returns whether the rank's memory can be fetched in this process.
  [[nodiscard]] virtual bool holds(Rank /*rank*/) const { return true; }
  /// Returns whether the executor fills its memory itself, for timed runs whose result is not checked; prepare() is
  /// then unnecessary.
  [[nodiscard]] virtual bool holds_own_data() const { return false; }
  /// Poisons all memory, then fills the initial contents from the program's whole tensors, in order of TensorId. Reads
  /// only tensors that have an initial content.
  virtual void prepare(std::span<const Matrix<float>> tensors) = 0;
  /// Runs the program. Without prepare() before it, a run starts from the memory that the previous run left. Throws
  /// Stuck.
  virtual Execution run(const RunOptions& options) = 0;
  /// Returns a part of a rank's memory. Requires holds(rank).
  [[nodiscard]] virtual Matrix<float> fetch(Rank rank, const Rectangle& area) const = 0;
};

using MakeExecutor = std::function<std::unique_ptr<Executor>(Lowered, Sizes)>;

}  // namespace commfuse::validate
