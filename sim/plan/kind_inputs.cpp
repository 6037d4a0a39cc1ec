// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/kind_inputs.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "model/hardware/machine.h"
#include "model/units.h"

namespace commfuse {

namespace {

std::string in_words(FlopsPerSecond rate) { return fmt::format("{:.0f} TFLOP/s", rate.value / 1e12); }
std::string in_words(BytesPerSecond rate) { return fmt::format("{:.4g} GB/s", rate.value / 1e9); }
std::string in_words(Duration time) { return fmt::format("{:.4g} us", to_microseconds(time)); }

class Inputs {
 public:
  template <class T>
  void add(const std::string& what, const Parameter<T>& parameter) {
    inputs_.push_back({.what = what,
                       .value = in_words(parameter.value),
                       .standard_error = parameter.standard_error,
                       .provenance = std::string(name_of(parameter.provenance)),
                       .source = parameter.source});
  }
  void add(const std::string& where, const Link& link) {
    add(where + ", nominal", link.nominal_rate);
    add(where + ", one pair", link.peer.rate);
    add(where + ", latency of a pair", link.peer.latency);
    add(where + ", a collective", link.collective.rate);
  }
  std::vector<CapacityInput> take() && { return std::move(inputs_); }

 private:
  std::vector<CapacityInput> inputs_;
};

}  // namespace

std::vector<CapacityInput> inputs_of(const Machine& machine, DType dtype) {
  Inputs inputs;
  if (machine.accelerator.supports(dtype)) {
    inputs.add(fmt::format("dense peak, {}", name_of(dtype)), machine.accelerator.matrix_unit(dtype).dense_peak);
  }
  inputs.add("memory bandwidth", machine.accelerator.hbm_bandwidth);
  inputs.add(machine.link.name, machine.link);
  if (machine.network) {
    inputs.add(machine.network->name, *machine.network);
  }
  return std::move(inputs).take();
}

}  // namespace commfuse
