// SPDX-License-Identifier: Apache-2.0
// The part of pricing a program that depends neither on sizes nor on the machine: which time each op takes, which ops
// are compared with an uncut GEMM, what the host pays for. It is computed once per structure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "model/cost/wires.h"
#include "model/program/order.h"
#include "model/program/program.h"
#include "model/units.h"

namespace commfuse {

/// Divides the time of a kernel among its parts in proportion to their sizes, so that the parts add up to exactly that
/// time.
class KernelParts {
 public:
  KernelParts() = default;
  explicit KernelParts(const Program& program);

  /// Returns the op's share of the time of its kernel; the whole time if the op is not a part.
  [[nodiscard]] Duration share(const Program& program, std::size_t op, Duration whole) const;
  /// Returns false for an op that runs inside a kernel launched earlier.
  [[nodiscard]] bool launched(const Program& program, std::size_t op) const;

  static bool is_part(const Program& program, std::size_t op);

 private:
  std::vector<std::int32_t> before_;  // by op: blocks of its kernel in the parts before it
};

/// Returns true if the op is on a lane of kind kernel.
bool in_kernel(const Program& program, std::size_t op);

struct PricePlan {
  /// Number of combinations of communication that an op may meet: none, exchanges, collectives, both.
  static constexpr std::uint32_t meetings = 4;
  /// Marks an op whose time is not that of its shape: attention, a part of a kernel, an op inside a kernel.
  static constexpr std::uint32_t own_time = std::numeric_limits<std::uint32_t>::max();

  struct OfOp {
    std::uint32_t met = own_time;    ///< index in KernelTimes::shapes of its time beside the ops that it may meet
    std::uint32_t alone = own_time;  ///< index of its time without a concurrent op
    OpKind kind = OpKind::gemm;
    std::int8_t axis = 0;           ///< axis of the mesh along which a transfer moves data; 0 for other ops
    bool is_launched = true;        ///< false inside a kernel that was launched before
    std::uint32_t other_waits = 0;  ///< waits on other lanes, for which the host records an event each
  };
  /// An essential GEMM.
  struct CutGemm {
    std::size_t op = 0;
    bool is_on_first_rank = true;
  };

  /// Communication that holds SMs and that a kernel may meet: a range of `sm_holders`.
  struct Beside {
    std::size_t op = 0;  ///< the kernel
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  KernelParts parts;
  std::vector<OfOp> ops;
  std::vector<std::size_t> sm_holders;      ///< transfers that hold SMs, by lane, then by id
  std::vector<Beside> beside;               ///< by kernel, one range for each lane that has such transfers
  std::vector<std::uint32_t> kernels;       ///< places in KernelTimes::shapes of GEMMs and elementwise ops, each once
  std::vector<CutGemm> cut_gemms;           ///< separate kernels
  std::vector<CutGemm> part_gemms;          ///< parts of kernels
  std::vector<std::size_t> differ_by_rank;  ///< attention whose queries have different positions on every rank
  std::vector<SharedPort> shared_ports;
  bool contends = false;          ///< some transfer may run concurrently with a collective
  bool moves_in_kernels = false;  ///< data move inside kernels
  bool has_attention = false;     ///< some op is attention, whose times are not stored by shape
};

/// Returns the plan. Requires `meetings` to be meetings_of(program).
PricePlan price_plan(const Program& program, const std::vector<Meetings>& meetings);

}  // namespace commfuse
