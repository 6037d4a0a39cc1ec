// SPDX-License-Identifier: Apache-2.0
// The verdict on one node: how likely it is healthy, and which fault explains it best.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/expect/evidence.h"
#include "model/expect/expectation.h"
#include "model/expect/faults.h"

namespace commfuse {

enum class Health : std::uint8_t { healthy, bad, undecided };
std::string_view name_of(Health health);

/// How much slower.
enum class Severity : std::uint8_t { none, minor, major, critical };
std::string_view name_of(Severity severity);

struct SuspectedFault {
  const Fault* fault = nullptr;
  double probability = 0.0;  ///< Of the node being bad, and for this reason.
  std::string subject{};     ///< "GPU 3 – GPU 5"; empty where only the node is known.
};

struct Judgement {
  Health health = Health::undecided;
  double odds = 0.0;                 ///< evidence.h
  double healthy_probability = 1.0;  ///< With 5% of nodes bad before anything was measured.
  double slowdown = 1.0;             ///< Of what the likeliest fault slows, by the medians; 1 where there is nothing.
  Severity severity = Severity::none;
  std::vector<SuspectedFault> suspects;  ///< The likeliest first; those above 1%.
  std::vector<ClassHalf> halves;
  std::vector<Expected> expected;  ///< One for each row: the model's, or the reference's.
};

/// Share of nodes that are bad before anything was measured: assumed.
inline constexpr double bad_share = 0.05;

/// Whose measurements the machine's file was fitted to.
enum class FittedTo : std::uint8_t {
  other_nodes,  ///< Another cluster's, or nobody's.
  this_fleet,   ///< Nodes of the fleet that is judged: what the formulas get wrong of its sizes they got right there.
};

/// Judges many nodes against one machine; keeps what it worked out for rows that another node had too.
class Judge {
 public:
  /// Requires 0 < false_alarms < 0.5. With a reference, messages that it has are held against it.
  Judge(Expectation expectation, double false_alarms, Reference reference = {},
        FittedTo fitted_to = FittedTo::other_nodes);

  /// Requires messages that fit the machine.
  Judgement of(std::span<const MeasuredMessage> measured);

  [[nodiscard]] const Expectation& expectation() const { return expectation_; }
  [[nodiscard]] double false_alarms() const { return false_alarms_; }

 private:
  struct Degree {
    const Fault* fault = nullptr;
    std::size_t degrees = 1;  ///< Of the fault.
    Machine machine;
  };
  /// What rows of these messages would be.
  struct Known {
    std::vector<Expected> expected;
    std::vector<FaultPattern> patterns;  ///< By degrees_.
  };
  const Known& known_of(std::span<const MeasuredMessage> measured);
  [[nodiscard]] std::vector<double> log_ratios(std::span<const ClassHalf> halves, const Known& known) const;
  void decide(Judgement& judgement, const Known& known) const;

  /// With less doubt where the fit saw such sizes.
  [[nodiscard]] Expected expected_of(const Message& message) const;

  Expectation expectation_;
  Expectation undecided_;  ///< With the errors of other parameters alone.
  double false_alarms_;
  Reference reference_;
  FittedTo fitted_to_;
  std::vector<Degree> degrees_;
  std::map<std::string, Known> known_;
};

/// What several nodes have in common: of each message that at least `least` of them measured, the median of
/// ln(measured / expected); the spread of nodes around it by the median distance of theirs, at least repeat_error.
Reference reference_of(std::span<const std::vector<MeasuredMessage>> nodes, const Expectation& expectation,
                       std::size_t least = 1);

}  // namespace commfuse
