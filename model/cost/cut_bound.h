// SPDX-License-Identifier: Apache-2.0
// Lower bound on the time of every run: the time to move its bytes over the busiest wire at the wire's capacity. A
// result below the bound is a mistake in this program, whichever part computed it. docs/decisions/0042 defines the
// capacity and what the bound omits.
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

/// Least time to move a program's bytes, and the wire that needs it.
struct Cut {
  double seconds = 0.0;
  double rounding = 0.0;  ///< largest sum of the rounding of all ops, in seconds
  std::string_view wire;  ///< valid as long as its CutBound exists
};

/// Returns the time of the cut less its rounding, rounded down to whole picoseconds.
Duration least_time(const Cut& cut);

/// Aborts and names the wire when `time` is less than the cut by more than rounding.
void require_above_cut(Duration time, const Cut& cut);

/// Busiest wires of a program on a machine, for any sizes. Exchanges load the ports and each link of their route.
/// Collectives load the port of a GPU and the NICs of a node with the bytes that any algorithm must send, even with
/// sums in the switch. Data that move inside a kernel cross a wire once, however many ranks need them, because such a
/// kernel is itself a bound.
class CutBound {
 public:
  /// Rank r runs on GPU r. Without a topology there is no bound.
  CutBound(const Program& program, const Machine& machine);

  /// Returns the cut at these sizes. Requires the constructor's program, and `sizes` bound to it.
  [[nodiscard]] Cut at(const Program& program, const Sizes& sizes) const;

 private:
  /// A wire that may be the busiest.
  struct Wire {
    std::vector<std::pair<std::uint32_t, double>> shapes;  // shape, and seconds per byte of the shape
    std::string name;
  };
  /// Adds the ports of a machine with one switch.
  void add_ports(const Program& program, const Machine& machine);
  /// Adds a wire with these seconds per byte, by shape, unless all are 0 or an equal wire is known.
  void add_wire(const std::vector<double>& seconds, std::string name);
  std::size_t ops_ = 0;
  std::vector<Wire> wires_;
};

/// Returns the bytes that cross a link in an all-reduce if the switch adds and spreads the sums, (N + 1) / N of the
/// tensor, divided by the bytes that cross it if ranks exchange partial and then complete sums, 2 (N - 1) / N. Requires
/// at least two ranks.
double crossings_with_switch_sums(int ranks);

/// Returns true if data move inside kernels.
bool kernels_move(const Program& program);

/// Returns, by op, the seconds per byte of each transfer inside a kernel: a set of transfers (wire_loads.h) takes as
/// long as its busiest wire needs at that wire's rate, and the ops of the set share this time evenly. Values of other
/// ops are meaningless.
std::vector<double> seconds_per_byte_in_kernel(const Program& program, const Machine& machine);

}  // namespace commfuse
