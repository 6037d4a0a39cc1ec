// SPDX-License-Identifier: Apache-2.0
// Time of a message on a healthy machine, and the range of healthy measurements.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/expect/message.h"
#include "model/hardware/machine.h"

namespace commfuse {

/// Errors are standard errors of ln(time).
struct Expected {
  Message message;
  Duration time{};
  double shared_error = 0.0;  ///< from the machine's parameters: messages that depend on them have correlated errors
  double own_error = 0.0;     ///< residual of the fit for this message
  Limit limit = Limit::bandwidth;
};

/// Returns one standard error of ln(time) of one measurement.
double error_of(const Expected& expected);

/// Range of all but a share of healthy measurements: `false_alarms` lie above and as many below.
struct ExpectedRange {
  Duration fast{};
  Duration slow{};
};

/// Returns the range. Requires 0 < false_alarms < 0.5. Errors have the tails of model/analysis/error_tail.h.
ExpectedRange range_of(const Expected& expected, double false_alarms);

/// Returns the algorithm bandwidth of nccl-tests, in bytes per second.
BytesPerSecond algorithm_bandwidth(const Message& message, Duration time);
BytesPerSecond bus_bandwidth(const Message& message, Duration time);

/// The parameters of a machine whose errors count.
enum class ParameterErrors : std::uint8_t {
  every,
  undecided,  ///< only those that no fit decided; the residual of a fit on held-out rows contains the others
};

/// Standard errors of ln(time) that software of another version than the fit's adds, common to all messages.
struct SoftwareErrors {
  double bandwidth = 0.0;  ///< messages that bandwidth limits
  double latency = 0.0;
};

/// Expectations of one machine for many messages. Keeps the machine with each parameter raised by its error.
class Expectation {
 public:
  explicit Expectation(Machine machine, ParameterErrors errors = ParameterErrors::every,
                       const SoftwareErrors& software = {});

  /// Returns the expectation. Requires a message for which fits() is true.
  [[nodiscard]] Expected of(const Message& message) const;
  [[nodiscard]] const Machine& machine() const { return *machine_; }

  /// Returns the least power of two whose bus bandwidth is 90% of that of 16 GiB. Has the same requirement.
  [[nodiscard]] Bytes saturation(const Message& message) const;

 private:
  std::shared_ptr<const Machine> machine_;
  SoftwareErrors software_;
  std::vector<Machine> raised_;  ///< one for each parameter of its links, raised by its error
};

/// Returns whether the fit of the message's kind covers such sizes and groups.
bool is_seen(const Machine& machine, const Message& message);

/// Returns true if the machine has the GPUs, the same number on each node, and for several nodes a network.
bool fits(const Machine& machine, const Message& message);

}  // namespace commfuse
