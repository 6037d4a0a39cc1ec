// SPDX-License-Identifier: Apache-2.0
#include "model/expect/expectation.h"

#include <cmath>
#include <optional>
#include <utility>

#include "model/analysis/error_tail.h"
#include "model/check.h"
#include "model/hardware/raised.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

Duration times(double factor, Duration time) { return from_seconds(factor * to_seconds(time)); }

}  // namespace

double error_of(const Expected& expected) {
  return std::sqrt(expected.shared_error * expected.shared_error + expected.own_error * expected.own_error);
}

ExpectedRange range_of(const Expected& expected, double false_alarms) {
  check(false_alarms > 0.0 && false_alarms < 0.5, "the false-alarm rate is below one half");
  const double off = math::exp(errors_with_share_below(1.0 - false_alarms) * error_of(expected));
  return {times(1.0 / off, expected.time), times(off, expected.time)};
}

BytesPerSecond algorithm_bandwidth(const Message& message, Duration time) {
  return {static_cast<double>(message.bytes.count) / to_seconds(time)};
}

BytesPerSecond bus_bandwidth(const Message& message, Duration time) {
  return {bus_factor(message.op, message.gpus) * algorithm_bandwidth(message, time).value};
}

bool fits(const Machine& machine, const Message& message) {
  const bool divides = message.nodes >= 1 && message.gpus >= 2 && message.gpus % message.nodes == 0;
  return divides && message.gpus / message.nodes <= machine.gpus_per_node && message.nodes <= machine.nodes &&
         (message.nodes == 1 || machine.network.has_value()) && (message.op != LinkOp::send_recv || message.gpus == 2);
}

bool is_seen(const Machine& machine, const Message& message) {
  const PricedShape shape = shape_of(message);
  const FitScope fit = fit_of(shape, machine, static_cast<int>(message.gpus));
  const auto holds = [&](FitSize size) {
    const std::optional<SeenRange>& range = fit.range(size);
    const std::int64_t value = shape.size[static_cast<std::size_t>(size)];
    return range && range->least <= value && value <= range->most;
  };
  return holds(FitSize::bytes) && (message.op == LinkOp::send_recv || holds(FitSize::ranks));
}

Expectation::Expectation(Machine machine, ParameterErrors errors, const SoftwareErrors& software)
    : machine_(std::make_shared<const Machine>(std::move(machine))), software_(software) {
  const std::vector<NamedParameter> parameters = parameters_of(*machine_);
  for (const RaisedMachine& raised : raised_beside_decoding(*machine_)) {
    const NamedParameter& parameter = parameters[raised.parameter];
    const bool is_decided = parameter.provenance == Provenance::fitted || parameter.provenance == Provenance::measured;
    if (!parameter.name.starts_with("accelerator.") && (errors == ParameterErrors::every || !is_decided)) {
      raised_.push_back(*raised.machine);
    }
  }
}

Expected Expectation::of(const Message& message) const {
  const PricedShape shape = shape_of(message);
  const int ranks = static_cast<int>(message.gpus);
  Expected expected{.message = message,
                    .time = message_time(*machine_, message),
                    .own_error = residual_of(shape, *machine_, ranks),
                    .limit = limit_of(shape, *machine_, ranks)};
  const double software = expected.limit == Limit::latency ? software_.latency : software_.bandwidth;
  double squares = software * software;
  for (const Machine& other : raised_) {
    const double effect = math::log(to_seconds(message_time(other, message)) / to_seconds(expected.time));
    squares += effect * effect;
  }
  expected.shared_error = std::sqrt(squares);
  return expected;
}

Bytes Expectation::saturation(const Message& message) const {
  constexpr std::int64_t largest = std::int64_t{16} << 30U;
  constexpr double share = 0.9;
  const auto rate = [&](std::int64_t bytes) {
    Message sized = message;
    sized.bytes = {bytes};
    return bus_bandwidth(sized, message_time(*machine_, sized)).value;
  };
  const double peak = rate(largest);
  std::int64_t bytes = largest;
  while (bytes > 1 && rate(bytes / 2) >= share * peak) {
    bytes /= 2;
  }
  return {bytes};
}

}  // namespace commfuse
