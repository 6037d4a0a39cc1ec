// SPDX-License-Identifier: Apache-2.0
// Time of a message on a healthy machine, and the range of healthy measurements.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/expect/message.h"
#include "model/hardware/machine.h"

namespace commfuse {

/// Expected time of a message. Errors are standard errors of ln(time).
struct Expected {
  Message message;
  Duration time{};
  double shared_error = 0.0;  ///< from the machine's parameters: messages that depend on them have correlated errors
  double own_error = 0.0;     ///< residual of the fit for this message
  Limit limit = Limit::bandwidth;
};

/// Returns one standard error of ln(time) for a single measurement.
double error_of(const Expected& expected);

/// Range of healthy measurements: a share of `false_alarms` is above it, and an equal share below.
struct ExpectedRange {
  Duration fast{};
  Duration slow{};
};

/// Returns the range. Requires 0 < false_alarms < 0.5. Errors have the tails of model/analysis/error_tail.h.
ExpectedRange range_of(const Expected& expected, double false_alarms);

/// Returns the algorithm bandwidth of nccl-tests, in bytes per second.
BytesPerSecond algorithm_bandwidth(const Message& message, Duration time);
BytesPerSecond bus_bandwidth(const Message& message, Duration time);

/// Parameters of the machine whose errors are included.
enum class ParameterErrors : std::uint8_t {
  every,
  undecided,  ///< only parameters that no fit determined; the residual of a fit on held-out rows includes the errors of
              ///< all others
};

/// Standard errors of ln(time), common to all messages, that are added if the software version differs from that of the
/// fit.
struct SoftwareErrors {
  double bandwidth = 0.0;  ///< bandwidth-limited messages
  double latency = 0.0;
};

/// Expectations of one machine for many messages. Keeps one machine per parameter of the links whose error is included,
/// with that parameter raised by its error.
class Expectation {
 public:
  explicit Expectation(Machine machine, ParameterErrors errors = ParameterErrors::every,
                       const SoftwareErrors& software = {});

  /// Returns the expectation. Requires fits() to be true for `message`.
  [[nodiscard]] Expected of(const Message& message) const;
  [[nodiscard]] const Machine& machine() const { return *machine_; }

  /// Returns the smallest message size, a power of two in bytes, at and above which the bus bandwidth is at least 90%
  /// of that at 16 GiB. Requires fits() to be true for `message`.
  [[nodiscard]] Bytes saturation(const Message& message) const;

 private:
  std::shared_ptr<const Machine> machine_;
  SoftwareErrors software_;
  std::vector<Machine> raised_;  ///< one for each included parameter of the links, with it raised by its error
};

/// Returns true if the fit of the message's kind covers its size and group.
bool is_seen(const Machine& machine, const Message& message);

/// Returns true if the message joins at least two GPUs (an exchange exactly two), with the same number on each node,
/// and the machine has these GPUs and, for several nodes, a network.
bool fits(const Machine& machine, const Message& message);

}  // namespace commfuse
