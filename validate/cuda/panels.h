// SPDX-License-Identifier: Apache-2.0
// Addresses of a program's rectangles in device memory, and division of stacks of rectangles into matching pieces.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/program/lower.h"
#include "model/program/sizes.h"
#include "validate/cuda/driver.h"

namespace commfuse::validate {

/// An operand: panels stacked one below the other.
using Stack = std::vector<Panel>;

std::int64_t rows_of(const Stack& stack);
/// Returns `count` rows of a stack, starting at row `first`. Requires that the stack has these rows.
Stack slice_of(const Stack& stack, std::int64_t first, std::int64_t count);
/// Returns one of `parts` slices of equal height. Requires that the number of rows is divisible by `parts`.
Stack part_of(const Stack& stack, std::size_t index, std::size_t parts);
/// Merges consecutive panels of a stack where the next panel starts at the address at which the previous one's rows
/// would continue, with equal columns, stride and dtype.
Stack joined(const Stack& stack);
/// Cuts all stacks at every row where a panel of any of them ends. Piece i has one panel of each stack, all of the same
/// height. Requires stacks of equal height.
std::vector<std::vector<Panel>> rows_in_step(std::span<const Stack> stacks);
/// Returns true if two panels share memory; a panel occupies everything from its first element to its last.
bool overlap(const Panel& a, const Panel& b);

/// The buffers of some ranks in device memory, one rank after another. A `place` is the position of a rank among them.
class Layout {
 public:
  /// The first rank begins at `base`, and every other rank after the previous one.
  Layout(const Program& program, const Sizes& sizes, Address base);

  /// Returns the bytes of one rank, rounded up so that every buffer of every rank is aligned.
  [[nodiscard]] Bytes per_rank() const { return {stride_}; }
  [[nodiscard]] Panel panel(std::size_t place, BufferId buffer) const;
  [[nodiscard]] Panel panel(std::size_t place, const Rectangle& rectangle) const;
  /// Returns the stack of a list of rectangles, one panel each.
  [[nodiscard]] Stack stack(std::size_t place, std::span<const Rectangle> operand) const;

 private:
  const Program& program_;
  const Sizes& sizes_;
  Address base_;
  std::vector<std::int64_t> first_;  // first byte of each buffer
  std::int64_t stride_ = 0;
};

}  // namespace commfuse::validate
