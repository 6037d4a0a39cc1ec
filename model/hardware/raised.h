// SPDX-License-Identifier: Apache-2.0
// Machines with one changed parameter, for sensitivities and the propagation of errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/hardware/machine.h"

namespace commfuse {

/// A parameter. Its name is its path in the file: "accelerator.matrix_units.bf16.gemm.ramp", "network.collective.rate".
struct NamedParameter {
  std::string name;
  double standard_error = 0.0;
  Provenance provenance = Provenance::prior;
  std::string source;
};

/// Returns all parameters in the order of the files. Parameters that are derived from a link for pairs or groups of
/// GPUs have no separate entry: they change with the parameter of the link.
std::vector<NamedParameter> parameters_of(const Machine& machine);

/// Returns the machine with the named parameter raised by `share` (0.01 is 1%), rounded to whole picoseconds, bytes and
/// CTAs. Its links have unlimited capacity. Aborts if there is no such parameter.
Machine raised(const Machine& machine, std::string_view name, double share);

/// The only ops whose times can depend on a parameter; `anything` if the parameter's name does not show which.
enum class AffectedOps : std::uint8_t {
  anything,
  gemms,         ///< GEMMs of one dtype, and attention.
  attention,     ///< Attention with the fused kernel.
  decoding,      ///< Decode attention, which only decoding steps have.
  experts,       ///< Layers of routed experts as single calls, which only decoding steps have.
  quantization,  ///< Quantization as single calls, which no program and no step has.
  collectives,
  all_reduces,  ///< All-reduces with NVLS or a tree.
  all_to_alls,  ///< All-to-alls with AllToAllParameters.
  exchanges,    ///< Exchanges inside a node.
};

/// A raised machine that is made only when it is first read: a sweep over the rate of a link keeps the raised machines
/// for every rate, but reads only half of them. Copies share the machine, and several threads may read it.
class MachineOnDemand {
 public:
  /// Holds a machine that exists already.
  MachineOnDemand(Machine machine);
  /// Holds raised(*base, name, share), which the first read computes. Requires `name` to be a parameter of *base.
  MachineOnDemand(std::shared_ptr<const Machine> base, std::string name, double share);

  const Machine& operator*() const;

 private:
  struct Made;
  std::shared_ptr<Made> made_;
};

/// Machine with one parameter raised by its own standard error.
struct RaisedMachine {
  std::size_t parameter = 0;  ///< Index in the result of parameters_of.
  MachineOnDemand machine;
  AffectedOps affects = AffectedOps::anything;
  std::optional<DType> dtype{};   ///< Dtype of the GEMMs for AffectedOps::gemms.
  bool is_between_nodes = false;  ///< True if ranks of one node do not depend on the parameter.
};

/// Returns one machine for each parameter with a standard error.
std::vector<RaisedMachine> raised_by_error(const Machine& machine);

/// Returns raised_by_error() without the parameters that affect no step. Its machines have no quantization.
std::vector<RaisedMachine> raised_for_steps(const Machine& machine);

/// Returns raised_for_steps() without the parameters that affect only decoding or only expert layers: half as many
/// machines for some GPUs. Its machines have no decoding kernels and no expert layers.
std::vector<RaisedMachine> raised_beside_decoding(const Machine& machine);

}  // namespace commfuse
