// SPDX-License-Identifier: Apache-2.0
// Verdict on one node: the probability that it is healthy, and the fault that best explains its measurements.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/expect/evidence.h"
#include "model/expect/expectation.h"
#include "model/expect/faults.h"
#include "model/expect/sibling_shares.h"

namespace commfuse {

enum class Health : std::uint8_t { healthy, bad, undecided };
std::string_view name_of(Health health);

/// Degree of slowness.
enum class Severity : std::uint8_t { none, minor, major, critical };
std::string_view name_of(Severity severity);
/// Returns the severity of a fault by its slowdown; never none. Requires `slowdown` >= 1.
Severity severity_of(double slowdown);

struct SuspectedFault {
  const Fault* fault = nullptr;
  double probability = 0.0;  ///< probability that the node is bad because of this fault
  std::string subject{};     ///< "GPU 3 – GPU 5"; empty if only the node is known
};

struct Judgement {
  Health health = Health::undecided;
  double odds = 0.0;                 ///< see evidence.h
  double healthy_probability = 1.0;  ///< given that 5% of nodes are bad before any measurement
  double slowdown = 1.0;  ///< median slowdown of the messages that the likeliest fault affects; 1 without a fault
  Severity severity = Severity::none;
  std::vector<SuspectedFault> suspects;  ///< suspects above 1%, the likeliest first
  std::vector<ClassHalf> halves;
  std::vector<Expected> expected;  ///< one for each row: from the model, or from the reference
};

/// Share of nodes that are bad before any measurement: assumed.
inline constexpr double bad_share = 0.05;

/// The nodes to whose measurements the machine's file was fitted.
enum class FittedTo : std::uint8_t {
  other_nodes,  ///< nodes of another cluster, or none
  this_fleet,   ///< nodes of the judged fleet: only a share of the residual differs between nodes
};

/// Judges many nodes against one machine. Reuses results for nodes whose rows have the same messages.
class Judge {
 public:
  /// Requires 0 < false_alarms < 0.5. Messages that the reference contains are judged against it. `shares` are used if
  /// the file was fitted to this fleet.
  Judge(Expectation expectation, double false_alarms, Reference reference = {},
        FittedTo fitted_to = FittedTo::other_nodes, const SiblingShares& shares = shipped_shares());

  /// Returns the judgement. Requires fits() to be true for every message.
  Judgement of(std::span<const MeasuredMessage> measured);

  [[nodiscard]] const Expectation& expectation() const { return expectation_; }
  [[nodiscard]] double false_alarms() const { return false_alarms_; }

 private:
  struct Degree {
    const Fault* fault = nullptr;
    std::size_t degrees = 1;  ///< number of degrees of the fault
    Machine machine;
    bool is_hidden = false;  ///< Bandwidth-limited messages keep their time.
  };
  /// Reusable results for rows with the same messages.
  struct Known {
    std::vector<Expected> expected;
    std::vector<FaultPattern> patterns;  ///< in the order of degrees_
  };
  const Known& known_of(std::span<const MeasuredMessage> measured);
  [[nodiscard]] std::vector<double> log_ratios(std::span<const ClassHalf> halves, const Known& known) const;
  void decide(Judgement& judgement, const Known& known) const;

  /// Returns the expectation; if the file was fitted to this fleet, with smaller errors for sizes that the fit
  /// included.
  [[nodiscard]] Expected expected_of(const Message& message) const;

  Expectation expectation_;
  Expectation undecided_;  ///< Includes only errors of parameters that no fit determined.
  double false_alarms_;
  Reference reference_;
  FittedTo fitted_to_;
  SiblingShares shares_;
  std::vector<Degree> degrees_;
  std::map<std::string, Known> known_;
};

/// Returns what several nodes have in common: for each message that at least `least` of them measured, the median of
/// ln(measured / expected), and the spread of the nodes around it, estimated from the median of their distances and at
/// least repeat_error.
Reference reference_of(std::span<const std::vector<MeasuredMessage>> nodes, const Expectation& expectation,
                       std::size_t least = 1);

}  // namespace commfuse
