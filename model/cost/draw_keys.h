// SPDX-License-Identifier: Apache-2.0
// Random draws of ops. The draw depends neither on the point nor on the id of the op, so that strategies, options and
// sizes are compared under common draws: a slow rank or a slow first GEMM is slow in all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cost/jitter.h"
#include "model/program/program.h"

namespace commfuse {

struct DrawKey {
  std::uint32_t step = 0;  ///< Number of earlier kernels with the same purpose.
  /// 4 x work + Draw. The work of an essential op is the index of its entry in Program::unfused, or an additional
  /// number if the program omits that entry; the work of any other op is 0.
  std::uint32_t purpose = 0;
  /// False for the second and later parts of one kernel: they share the kernel's draw, and do not stall again.
  bool can_stall = true;

  [[nodiscard]] Draw draw() const { return static_cast<Draw>(purpose % 4); }
  friend bool operator==(const DrawKey&, const DrawKey&) = default;
};

/// Returns the keys by op. An essential op belongs to the unfused work of the same kind, function, transposes and names
/// of dimensions; so the one GEMM of `serial` and the first partial GEMM of `commfuse` share a draw. Works that are
/// equal in all of these are distinguished by the weights of their ops (without a weight, by the output), in order of
/// first use. Steps are numbered in program order, separately inside each work, among local ops and among communication
/// ops, so every kernel of a rank has its own draw. Both halves of an exchange use the draw of the sender's op on the
/// sending rank.
std::vector<DrawKey> draw_keys(const Program& program);

}  // namespace commfuse
