// SPDX-License-Identifier: Apache-2.0
// The oracle: runs the lowered commands of all ranks one after another on real matrices. Slow, simple, deterministic.
// An executor must produce the same result, bit for bit, on the same program and data (level T1; verify.h states the
// exceptions).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/program/lower.h"
#include "model/program/sizes.h"
#include "validate/reference/iteration.h"
#include "validate/reference/memory.h"
#include "validate/values/matrix.h"

namespace commfuse::validate {

/// Arithmetic is fp32, rounded to the buffer's dtype when stored and to the wire's dtype when sent. An op takes effect
/// at one moment. A GEMM that accumulates adds its whole sum to the existing values. An exchange reads the send and
/// writes the receive once both ends are ready or, in a push, once the sender is ready.
class Interpreter final : public Executor {
 public:
  /// Throws std::runtime_error for fp8, which the reference does not store.
  Interpreter(Lowered lowered, Sizes sizes);

  [[nodiscard]] std::string_view name() const override { return "reference"; }
  void prepare(std::span<const Matrix<float>> tensors) override;
  /// Measures no time.
  Execution run(const RunOptions& options) override;
  [[nodiscard]] Matrix<float> fetch(Rank rank, BufferId buffer) const { return memory_.buffer(rank, buffer); }
  [[nodiscard]] Matrix<float> fetch(Rank rank, const Rectangle& area) const override {
    return memory_.read(rank, {&area, 1});
  }

  [[nodiscard]] const Program& program() const override { return *lowered_.program; }
  [[nodiscard]] const Sizes& sizes() const override { return sizes_; }

 private:
  Lowered lowered_;
  Sizes sizes_;
  std::vector<std::vector<Command>> commands_;  // by rank
  Memory memory_;
};

/// Fills the initial contents of all ranks that the memory holds, as Executor::prepare() does.
void fill(const Program& program, const Sizes& sizes, std::span<const Matrix<float>> tensors, Memory& memory);
/// Throws std::runtime_error unless the reference stores every buffer's dtype.
void require_storable(const Program& program);

/// Returns the area of a content's region in its tensor on a rank, in elements.
Area area_of(const Program& program, const Sizes& sizes, const Content& content, Rank rank);

}  // namespace commfuse::validate
