// SPDX-License-Identifier: Apache-2.0
// A machine on which an engine serves one replica of a model without sequence parallelism: every tensor rank has all
// tokens.
#pragma once

#include <cstdint>

#include "model/hardware/machine.h"
#include "sim/step/step.h"

namespace commfuse::score {

/// Sequences of one pass, and the tokens of each.
struct Sequences {
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
};

/// A machine with the sites simulated on it. Points refer to the machine and must not outlive this object.
class ServedMachine {
 public:
  explicit ServedMachine(const Machine& machine) : machine_(machine), sites_(structures_, machine_) {}
  ServedMachine(const ServedMachine&) = delete;
  ServedMachine& operator=(const ServedMachine&) = delete;

  /// Returns a prefill of the sequences. `model` must outlive the returned point.
  [[nodiscard]] StepPoint prefill(const Transformer& model, std::int64_t ranks, const Sequences& sequences) const {
    StepPoint point{.model = &model, .machine = &machine_, .plan = {}, .framework = {}};
    point.plan.tensor = ranks;
    point.plan.micro_batch = point.plan.global_batch = sequences.batch;
    point.plan.seq = sequences.tokens;
    point.serves = true;
    return point;
  }
  [[nodiscard]] SiteTimes& sites() { return sites_; }

 private:
  Machine machine_;
  StructureCache structures_;
  SiteTimes sites_;
};

}  // namespace commfuse::score
