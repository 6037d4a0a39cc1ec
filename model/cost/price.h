// SPDX-License-Identifier: Apache-2.0
// Prices every op of a program at given sizes on a machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/cost/attention.h"
#include "model/cost/costs.h"
#include "model/cost/price_plan.h"
#include "model/cost/price_settings.h"
#include "model/dtype.h"
#include "model/hardware/machine.h"
#include "model/program/order.h"
#include "model/program/sizes.h"

namespace commfuse {

/// Returns the costs of all ops. Exchanges of several lanes share the wires (wires.h), except when interference is
/// dynamic. Requires `meetings` to be meetings_of(program), `sizes` bound to the program, and a machine that supports
/// the dtypes of the program's GEMMs.
Costs price(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes, const Machine& machine,
            const PriceOptions& options);

/// A program with everything about its prices that depends on neither sizes nor the machine.
struct PricedProgram {
  const Program& program;
  const std::vector<Meetings>& meetings;  ///< meetings_of(program)
  const PricePlan& plan;                  ///< price_plan(program, meetings)
};

/// Times of kernels and transfers, computed once and reused for prices on machines that differ only in parameters
/// without an effect on these times. Valid for one program, sizes and options.
struct KernelTimes {
  static constexpr Duration unknown{-1};
  /// Times of one attention op.
  struct Attention {
    Duration met = unknown;    ///< beside the communication that may run concurrently
    Duration alone = unknown;  ///< without a concurrent op
  };
  std::vector<Duration> shapes;              ///< by shape, then by what the op meets; PricePlan numbers the places
  std::vector<Attention> attention;          ///< by op, on the first rank that takes part
  std::vector<Attention> attention_by_rank;  ///< by rank, then op, where queries differ by rank
  std::vector<Duration> unfused;             ///< by index in Program::unfused, without a concurrent op

  /// Forgets the times of GEMMs and attention.
  void forget_gemms(const Program& program);
  /// Forgets the times of attention.
  void forget_attention(const Program& program);
  /// Forgets the times of all ops but transfers.
  void forget_kernels(const Program& program);
  /// Forgets everything but keeps the allocated memory.
  void forget_all();
  /// Forgets the times of exchanges and collectives.
  void forget_transfers(const Program& program);
  /// Makes room for the times of a program, which are unknown where they have not been computed.
  void fit(const Program& program, const PricePlan& plan);
};

/// Writes the costs that the first price() returns into `costs`, and reuses the memory of `costs`. Uses the times in
/// `known` and adds the missing ones to it. Requires interference other than dynamic.
void price(const PricedProgram& priced, const Sizes& sizes, const Machine& machine, const PriceOptions& options,
           KernelTimes& known, Costs& costs);

/// Adds to `known` the times on this machine of the shapes in `nominal`, and returns true if all of them equal the
/// times in `nominal`: then a machine that differs only in kernels has the same costs. Returns false without adding
/// times for programs with attention, whose times are not stored by shape, and for implementations, which have their
/// own prices of kernels.
bool kernels_are_the_same(const PricedProgram& priced, const Sizes& sizes, const Machine& machine,
                          const PriceOptions& options, const KernelTimes& nominal, KernelTimes& known);

/// Returns the number of SMs left to a kernel by the communication that it may meet.
int sms_left(const Program& program, const Machine& machine, const Meetings& meetings, Interference interference);

/// Returns the number of ops that a host launches: all but those inside a kernel that was launched before.
std::int64_t launched_ops(const Program& program);

/// Returns the provenances of the parameters that the prices of a program depend on, by Provenance.
Provenances provenances_of(const Program& program, const Machine& machine, const PriceOptions& options);

}  // namespace commfuse
