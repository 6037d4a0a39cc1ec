// SPDX-License-Identifier: Apache-2.0
// What a message takes on a healthy machine, and how far a healthy measurement may be from it.
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
  double shared_error = 0.0;  ///< Of the machine's parameters: all messages that depend on them err together.
  double own_error = 0.0;     ///< What the fit leaves of this message.
  Limit limit = Limit::bandwidth;
};

/// One standard error of ln(time), of one measurement.
double error_of(const Expected& expected);

/// Times between which all but a share of healthy measurements lie, `false_alarms` above and as many below.
struct ExpectedRange {
  Duration fast{};
  Duration slow{};
};

/// Requires 0 < false_alarms < 0.5. Errors have the tails of model/analysis/error_tail.h.
ExpectedRange range_of(const Expected& expected, double false_alarms);

/// nccl-tests' figures, bytes per second.
BytesPerSecond algorithm_bandwidth(const Message& message, Duration time);
BytesPerSecond bus_bandwidth(const Message& message, Duration time);

/// Which of a machine's parameters count with their errors.
enum class ParameterErrors : std::uint8_t {
  every,
  undecided,  ///< Those that no fit decided. What a fit leaves of rows that it had not seen has the others in it.
};

/// Asks one machine many times. Keeps the machine with each parameter higher by its error.
class Expectation {
 public:
  explicit Expectation(Machine machine, ParameterErrors errors = ParameterErrors::every);

  /// Requires a message that fits the machine: `fits`.
  [[nodiscard]] Expected of(const Message& message) const;
  [[nodiscard]] const Machine& machine() const { return *machine_; }

  /// The least power of two whose bus bandwidth is 90% of the one of 16 GiB. Requires as above.
  [[nodiscard]] Bytes saturation(const Message& message) const;

 private:
  std::shared_ptr<const Machine> machine_;
  std::vector<Machine> raised_;  ///< By the error of each parameter of its links.
};

/// Whether the fit of the message's kind looked at such sizes and groups.
bool is_seen(const Machine& machine, const Message& message);

/// Whether the machine has the GPUs, as many on each node, and a network where there are several nodes.
bool fits(const Machine& machine, const Message& message);

}  // namespace commfuse
