// SPDX-License-Identifier: Apache-2.0
#include "model/expect/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "model/check.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

/// A half that a fault slows by less than this does not contribute to the slowdown of a node.
constexpr double least_effect = 0.03;

/// Applies to a file that was fitted to nodes of the judged fleet. Errors of parameters that a fit determined are not
/// independent of each other: together their squared error is at most this share of the square of the residual that
/// differs between siblings. When treated as independent, the parameters of 36 fits to one node implied errors of 6 to
/// 50% where its siblings were off by 2% (docs/decisions/0065).
constexpr double decided_share = 0.10;

double upper_median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double slowdown_of(std::span<const ClassHalf> halves, const FaultPattern& pattern) {
  std::vector<double> medians;
  for (std::size_t i = 0; i < halves.size(); ++i) {
    if (pattern[i] > least_effect) {
      medians.push_back(halves[i].median);
    }
  }
  return medians.empty() ? 1.0 : math::exp(std::max(0.0, upper_median(std::move(medians))));
}

/// Returns the pattern of the model's times on a machine; a hidden fault affects only latency-limited messages.
FaultPattern pattern_of(const Machine& machine, bool is_hidden, std::span<const MeasuredMessage> measured,
                        std::span<const Expected> expected, std::span<const ClassHalf> halves) {
  FaultPattern pattern;
  for (const ClassHalf& half : halves) {
    if (is_hidden && half.limit != Limit::latency) {
      pattern.push_back(0.0);
      continue;
    }
    std::vector<double> effects;
    for (const std::size_t row : half.rows) {
      effects.push_back(
          math::log(to_seconds(message_time(machine, measured[row].message)) / to_seconds(expected[row].time)));
    }
    pattern.push_back(upper_median(std::move(effects)));
  }
  return pattern;
}

void apply_reference(const Reference& reference, Expected& expected) {
  const auto offset = reference.offsets.find(key_of(expected.message));
  if (offset != reference.offsets.end()) {
    expected.time = from_seconds(math::exp(offset->second) * to_seconds(expected.time));
    expected.shared_error = 0.0;
    expected.own_error = 0.0;
  }
}

std::string text_of_messages(std::span<const MeasuredMessage> measured) {
  std::string key;
  for (const MeasuredMessage& row : measured) {
    const Message& message = row.message;
    fmt::format_to(std::back_inserter(key), "{} {} {} {};", static_cast<int>(message.op), message.gpus, message.nodes,
                   message.bytes.count);
  }
  return key;
}

}  // namespace

std::string_view name_of(Health health) {
  switch (health) {
    case Health::healthy: return "healthy";
    case Health::bad: return "bad";
    case Health::undecided: return "undecided";
  }
  return "";
}

Severity severity_of(double slowdown) {
  return slowdown >= 1.5 ? Severity::critical : slowdown >= 1.15 ? Severity::major : Severity::minor;
}

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::none: return "none";
    case Severity::minor: return "minor";
    case Severity::major: return "major";
    case Severity::critical: return "critical";
  }
  return "";
}

Judge::Judge(Expectation expectation, double false_alarms, Reference reference, FittedTo fitted_to,
             const SiblingShares& shares)
    : expectation_(std::move(expectation)),
      undecided_(expectation_.machine(), ParameterErrors::undecided),
      false_alarms_(false_alarms),
      reference_(std::move(reference)),
      fitted_to_(fitted_to),
      shares_(shares) {
  check(false_alarms > 0.0 && false_alarms < 0.5, "the false-alarm rate is below one half");
  for (const Fault& fault : all_faults()) {
    std::vector<Machine> machines = fault.degrees(expectation_.machine());
    const std::size_t degrees = machines.size() * (fault.hides_behind_transfers ? 2 : 1);
    for (Machine& machine : machines) {
      if (fault.hides_behind_transfers) {
        degrees_.push_back({&fault, degrees, machine, true});
      }
      degrees_.push_back({&fault, degrees, std::move(machine), false});
    }
  }
}

Expected Judge::expected_of(const Message& message) const {
  Expected expected = expectation_.of(message);
  if (fitted_to_ == FittedTo::this_fleet && is_seen(expectation_.machine(), message)) {
    expected.own_error *= expected.limit == Limit::latency ? shares_.latency : shares_.bandwidth;
    const double undecided = undecided_.of(message).shared_error;
    const double decided = expected.shared_error * expected.shared_error - undecided * undecided;
    const double decided_limit = decided_share * expected.own_error * expected.own_error;
    expected.shared_error = std::sqrt(undecided * undecided + std::clamp(decided, 0.0, decided_limit));
  }
  return expected;
}

const Judge::Known& Judge::known_of(std::span<const MeasuredMessage> measured) {
  const auto [entry, is_new] = known_.try_emplace(text_of_messages(measured));
  Known& known = entry->second;
  if (is_new) {
    for (const MeasuredMessage& row : measured) {
      known.expected.push_back(expected_of(row.message));
    }
    const std::vector<ClassHalf> halves = class_halves(measured, known.expected);
    for (const Degree& degree : degrees_) {
      known.patterns.push_back(pattern_of(degree.machine, degree.is_hidden, measured, known.expected, halves));
    }
    for (Expected& expectation : known.expected) {
      apply_reference(reference_, expectation);
    }
  }
  return known;
}

/// Returns, for each degree, ln(weight x likelihood of the medians with the fault / likelihood without a fault), where
/// weight is the degree's share of its fault's weight.
std::vector<double> Judge::log_ratios(std::span<const ClassHalf> halves, const Known& known) const {
  const double healthy = log_likelihood(halves, FaultPattern(halves.size(), 0.0));
  std::vector<double> ratios;
  for (std::size_t i = 0; i < degrees_.size(); ++i) {
    ratios.push_back(log_likelihood(halves, known.patterns[i]) - healthy -
                     math::log(static_cast<double>(degrees_[i].degrees) / degrees_[i].fault->weight));
  }
  return ratios;
}

void Judge::decide(Judgement& judgement, const Known& known) const {
  const std::vector<double> ratios = log_ratios(judgement.halves, known);
  const auto likeliest = std::max_element(ratios.begin(), ratios.end());
  std::map<const Fault*, double> by_fault;  // relative to the likeliest degree, to avoid overflow
  for (std::size_t i = 0; i < degrees_.size(); ++i) {
    by_fault[degrees_[i].fault] += math::exp(ratios[i] - *likeliest);
  }
  double sum = 0.0;
  double weights = 0.0;
  for (const auto& [fault, ratio] : by_fault) {
    sum += ratio;
    weights += fault->weight;
  }
  constexpr double largest = 600.0;  // e^600 is still in the range of a double
  judgement.odds = math::exp(std::min(largest, *likeliest)) * sum / weights;
  judgement.healthy_probability = 1.0 / (1.0 + judgement.odds * bad_share / (1.0 - bad_share));
  for (const auto& [fault, ratio] : by_fault) {
    const double probability = (1.0 - judgement.healthy_probability) * ratio / sum;
    if (probability > 0.01) {
      judgement.suspects.push_back({fault, probability});
    }
  }
  std::stable_sort(judgement.suspects.begin(), judgement.suspects.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  const bool is_bad = judgement.odds >= 1.0 / false_alarms_ && may_condemn(judgement.halves);
  judgement.health = is_bad ? Health::bad : is_enough(judgement.halves) ? Health::healthy : Health::undecided;
  if (is_bad) {
    judgement.slowdown =
        slowdown_of(judgement.halves, known.patterns[static_cast<std::size_t>(likeliest - ratios.begin())]);
    judgement.severity = severity_of(judgement.slowdown);
  }
}

Judgement Judge::of(std::span<const MeasuredMessage> measured) {
  const Known& known = known_of(measured);
  Judgement judgement{.expected = known.expected};
  judgement.halves = class_halves(measured, known.expected, reference_.spread);
  if (!judgement.halves.empty()) {
    decide(judgement, known);
  }
  return judgement;
}

Reference reference_of(std::span<const std::vector<MeasuredMessage>> nodes, const Expectation& expectation,
                       std::size_t least) {
  using Key = decltype(key_of(Message{}));
  std::map<Key, double> expected_us;
  std::map<Key, std::vector<double>> offsets;
  const auto offset_of = [&](const MeasuredMessage& row) {
    const auto [entry, is_new] = expected_us.try_emplace(key_of(row.message));
    if (is_new) {
      entry->second = to_microseconds(message_time(expectation.machine(), row.message));
    }
    return math::log(row.time_us / entry->second);
  };
  for (const std::vector<MeasuredMessage>& node : nodes) {
    for (const MeasuredMessage& row : node) {
      offsets[key_of(row.message)].push_back(offset_of(row));
    }
  }
  Reference reference;
  for (auto& [key, values] : offsets) {
    if (values.size() >= least) {
      reference.offsets.emplace(key, upper_median(std::move(values)));
    }
  }
  std::vector<double> distances;
  for (const std::vector<MeasuredMessage>& node : nodes) {
    std::vector<double> node_distances;
    for (const MeasuredMessage& row : node) {
      if (const auto offset = reference.offsets.find(key_of(row.message)); offset != reference.offsets.end()) {
        node_distances.push_back(offset_of(row) - offset->second);
      }
    }
    if (!node_distances.empty()) {
      distances.push_back(std::abs(upper_median(std::move(node_distances))));
    }
  }
  constexpr double deviations_per_median_distance = 1.4826;  // standard deviation / median distance, for normal errors
  if (!distances.empty()) {
    reference.spread = std::max(repeat_error, deviations_per_median_distance * upper_median(std::move(distances)));
  }
  return reference;
}

}  // namespace commfuse
