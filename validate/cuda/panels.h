// SPDX-License-Identifier: Apache-2.0
// Where the rectangles of a program lie in device memory, and how stacks of them are cut so that they fit each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/program/lower.h"
#include "model/program/sizes.h"
#include "validate/cuda/driver.h"

namespace commfuse::validate {

/// Panels that stand one below the other: an operand.
using Stack = std::vector<Panel>;

std::int64_t rows_of(const Stack& stack);
/// So many rows of a stack from a row of it on. Requires that it has them.
Stack slice_of(const Stack& stack, std::int64_t first, std::int64_t count);
/// One of `parts` equally high slices. Requires that the rows divide.
Stack part_of(const Stack& stack, std::size_t which, std::size_t parts);
/// The same stack with panels that continue each other in memory made one.
Stack joined(const Stack& stack);
/// Cuts all stacks at the rows where any of them changes its panel: piece i holds one panel of each stack, all equally
/// high. Requires stacks of as many rows.
std::vector<std::vector<Panel>> rows_in_step(std::span<const Stack> stacks);
/// Whether two panels share memory; a panel takes all from its first element to its last.
bool overlap(const Panel& a, const Panel& b);

/// The buffers of some ranks in device memory, one behind the other.
class Layout {
 public:
  /// The first rank begins at `base`, every other one behind the one before.
  Layout(const Program& program, const Sizes& sizes, Address base);

  /// What one rank takes, rounded up so that every buffer of every rank is aligned.
  [[nodiscard]] Bytes per_rank() const { return {stride_}; }
  [[nodiscard]] Panel panel(std::size_t place, BufferId buffer) const;
  [[nodiscard]] Panel panel(std::size_t place, const Rectangle& rectangle) const;
  /// Of a list of rectangles, one panel each.
  [[nodiscard]] Stack stack(std::size_t place, std::span<const Rectangle> operand) const;

 private:
  const Program& program_;
  const Sizes& sizes_;
  Address base_;
  std::vector<std::int64_t> first_;  // by buffer: its first byte
  std::int64_t stride_ = 0;
};

}  // namespace commfuse::validate
