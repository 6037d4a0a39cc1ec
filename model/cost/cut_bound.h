// SPDX-License-Identifier: Apache-2.0
// What no run outruns: its bytes over a wire, by what the wire is built for. A result below that is our mistake,
// whoever worked it out. docs/decisions/0042 says what counts as capacity and what is left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/hardware/machine.h"
#include "model/program/program.h"
#include "model/program/sizes.h"
#include "model/units.h"

namespace commfuse {

/// The least time of some bytes, and the wire that takes it.
struct Cut {
  double seconds = 0.0;
  double rounding = 0.0;  ///< Seconds that times of ops are rounded by, together.
  std::string_view wire;  ///< Lives as long as the bound that it is of.
};

/// Whole picoseconds that the cut takes, whatever ops are rounded to.
Duration least_time(const Cut& cut);

/// Aborts and names the wire when `time` is less than the cut by more than rounding.
void require_above_cut(Duration time, const Cut& cut);

/// The busiest wires of a program on a machine, for any sizes. Exchanges load each link of their route, and ports.
/// Collectives load the port of a GPU and the NICs of a node with what any algorithm has to send, sums in the switch
/// included. What moves inside a kernel crosses a wire once, however many ranks it is for, as the kernel is a bound.
class CutBound {
 public:
  /// Rank r runs on GPU r. Without a topology nothing is bounded.
  CutBound(const Program& program, const Machine& machine);

  /// Requires sizes of the program.
  [[nodiscard]] Cut at(const Program& program, const Sizes& sizes) const;

 private:
  /// One of those that may be the busiest.
  struct Wire {
    std::vector<std::pair<std::uint32_t, double>> shapes;  // seconds a byte of each
    std::string name;
  };
  /// On a switch.
  void add_ports(const Program& program, const Machine& machine);
  /// By shape, unless there is one like it.
  void add_wire(const std::vector<double>& seconds, std::string name);
  std::size_t ops_ = 0;
  std::vector<Wire> wires_;
};

/// Whether something moves inside kernels.
bool kernels_move(const Program& program);

/// Seconds that a byte of each op inside a kernel takes, by op: a set of transfers (wire_loads.h) takes what its
/// busiest wire does at its rate, and its ops share that evenly. Means nothing of other ops.
std::vector<double> seconds_a_byte_in_kernel(const Program& program, const Machine& machine);

}  // namespace commfuse
