// SPDX-License-Identifier: Apache-2.0
// A machine of which one parameter is another: what a time hangs on, and how far errors carry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/hardware/machine.h"

namespace commfuse {

/// A parameter by its place in the file: "accelerator.matrix_units.bf16.gemm.ramp", "network.collective.rate".
struct NamedParameter {
  std::string name;
  double standard_error = 0.0;
  Provenance provenance = Provenance::prior;
  std::string source;
};

/// All of them, in the order of the files. What is worked out from a link for pairs or groups of GPUs has no entry of
/// its own: it moves with the link's.
std::vector<NamedParameter> parameters_of(const Machine& machine);

/// The machine with the parameter of that name so much higher: 0.01 is 1 %. Rounded to whole picoseconds and bytes.
/// Aborts where there is none.
Machine raised(const Machine& machine, std::string_view name, double share);

/// What alone can hang on a parameter; what tells nothing of itself may be anything.
enum class FeltBy : std::uint8_t {
  anything,
  products,   ///< Of one dtype, attention's among them.
  attention,  ///< By one kernel.
  collectives,
  all_reduces,  ///< By one kernel of theirs.
  all_to_alls,  ///< By one kernel.
  exchanges,    ///< Inside a node.
};

/// One parameter higher by its own standard error.
struct RaisedMachine {
  std::size_t parameter = 0;  ///< Its place in parameters_of.
  Machine machine;
  FeltBy felt_by = FeltBy::anything;
  std::optional<DType> dtype{};   ///< Of products.
  bool is_between_nodes = false;  ///< Ranks of one node feel nothing of it.
};

/// One a parameter that has an error.
std::vector<RaisedMachine> raised_by_error(const Machine& machine);

}  // namespace commfuse
