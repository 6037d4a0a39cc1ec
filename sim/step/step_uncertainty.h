// SPDX-License-Identifier: Apache-2.0
// The uncertainty of a whole model's time: each parameter of the machine, of the framework and of an implementation is
// raised by its standard error, one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/analysis/uncertainty.h"
#include "model/config/framework.h"
#include "model/config/implementation.h"
#include "model/hardware/raised.h"
#include "sim/step/layer_cost.h"

namespace commfuse {

/// A step's machine with one parameter raised, and with the number of nodes that the plan needs.
struct RaisedStep {
  std::size_t parameter = 0;  ///< Index into parameters_of.
  const Machine* machine = nullptr;
  SiteTimes* times = nullptr;  ///< Times on that machine.
};

/// Copies of a machine, each with one parameter raised. The machine and the structures must outlive this object.
class RaisedSteps {
 public:
  RaisedSteps(const Machine& machine, StructureCache& structures);
  [[nodiscard]] const std::vector<RaisedStep>& steps() const { return steps_; }

 private:
  std::vector<RaisedMachine> machines_;
  std::vector<std::unique_ptr<SiteTimes>> times_;
  std::vector<RaisedStep> steps_;
};

/// A framework with one parameter raised by its own standard error.
struct RaisedFramework {
  std::string parameter;  ///< Its key in the file.
  Provenance provenance = Provenance::prior;
  Framework framework;
};

/// Returns one framework for each parameter with a standard error, sorted by key. The error of attention_time has no
/// entry, because step_residual() contains it: only training steps have frameworks that set it.
std::vector<RaisedFramework> raised_by_error(const Framework& framework);

/// An implementation with one cost raised by its own standard error.
struct RaisedKernels {
  std::string cost;  ///< Its key in the file, such as "ag_gemm.per_call".
  std::unique_ptr<const Implementation> kernels;
};

/// Returns one implementation for each cost on this machine that has an error, except the residual. SiteTimes
/// recognizes implementations by their address, so the returned implementations must outlive all SiteTimes that priced
/// them.
std::vector<RaisedKernels> raised_by_error(const Implementation& kernels, const Machine& machine);

/// The time of a point: a step, a prefill or a decoding step.
struct StepTime {
  Duration (*of)(const StepPoint& point, SiteTimes& times) = nullptr;
  bool backward = true;  ///< True if the point has backward passes.
};

/// Standard errors of ln(measured / predicted) beyond the errors of the machine.
struct StepResidual {
  double of_machine = 0.0;  ///< Common to all steps on one machine.
  double of_layout = 0.0;   ///< Specific to one layout, batch and sequence on the machine.
};

/// Returns the errors of a training step. They come from `commfuse-sim score --kind training_step --rows`, grouped by
/// table and machine. Dense models: the means of 14 groups are off by 0.069 root mean square, about 0.03 of which comes
/// from the machine's own errors; within a group rows vary by 0.041, pooled over the 11 groups with several rows.
/// Mixtures of experts: five groups, predicted too fast by 0.21 to 0.53, and rows within a group vary by 0.14.
StepResidual step_residual(const Transformer& model);

/// Returns the error of a prefill or a decoding step, common to all rows on one machine. From `commfuse-sim score`:
/// serial prefills of three tables (18 rows) are off by 0.06 at two thirds of the rows, the decoding steps of the only
/// table (2 rows) by 0.16 and 0.25. No table has prefills or decoding of experts, so they have the error of training
/// steps.
StepResidual pass_residual(const StepPoint& point);

/// Returns the uncertainty of the time of a point. Sites of tensor ranks keep the schedules that are best on the
/// unchanged machine; a block of Ulysses ranks has the best schedule on each machine. Training steps also have the
/// errors of step_residual(), prefills and decoding steps those of pass_residual(). With `raised_kernels`, a point with
/// an implementation also has the errors of these costs and the residual of their fit; the costs must be those of
/// StepPoint::implemented or, without one, of the framework's implementation. Requires what `time` requires, and throws
/// as `time` does.
Uncertainty step_uncertainty(const StepPoint& point, SiteTimes& times, StepTime time,
                             const std::vector<RaisedStep>& raised,
                             std::optional<std::span<const RaisedKernels>> raised_kernels = std::nullopt);

}  // namespace commfuse
