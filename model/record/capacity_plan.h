// SPDX-License-Identifier: Apache-2.0
// What planning found (commfuse.capacity/1): GPUs, time and money of a whole training run, by kind of GPUs, and what
// would change them. Seconds, days, hours and money of the user's currency are doubles: they are answers, not clocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.h"
#include "model/workload/training_plan.h"

namespace commfuse {

inline constexpr std::string_view capacity_schema = "commfuse.capacity/1";

/// What comes out with the inputs as given, and where it lies nine times in ten: 5 % of all draws are below, 5 % above.
struct Interval {
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
};

/// So many GPUs of one kind with their best layout.
struct CapacityRun {
  std::string kind;
  std::int64_t gpus = 1;
  std::int64_t nodes = 1;
  TrainingPlan layout;

  // One step.
  Interval step_s;
  double step_p50_s = 0.0, step_p95_s = 0.0, step_p99_s = 0.0, step_p99_9_s = 0.0;  ///< GPUs are drawn anew.
  double step_alike_s = 0.0;  ///< If no GPU were slower than another: the rest is the wait for the slowest.
  double compute_s = 0.0, waiting_s = 0.0, gradients_s = 0.0, optimizer_s = 0.0;  ///< Add up to the step.
  Interval tokens_per_second;
  Interval mfu;
  double hfu = 0.0;
  double memory_gb = 0.0;  ///< Of the fullest GPU.

  // The whole run.
  Interval goodput;
  double checkpoint_every_s = 0.0;
  double failures = 0.0;
  Interval days, gpu_hours, cost, cost_per_mtok;
  std::optional<Interval> energy_mwh;  ///< Where the power is known, as the next.
  std::optional<double> power_mw;
  double confidence = 0.0;  ///< How likely deadline and budget are kept.
  std::string misses;       ///< The limits it does not keep: "deadline, budget"; empty: none.
};

/// A product that meets a collective, of one micro-batch.
struct CapacitySite {
  std::string name;
  std::string strategy;
  std::string schedule;  ///< With its parameters: "commfuse (ring, g=2)".
  double serial_us = 0.0;
  double best_us = 0.0;
  double compute_us = 0.0;
  std::optional<double> rate_to_hide;  ///< Times the node's links; nothing where 16 times is not enough.
};

/// A parameter of the machine whose error the step hangs on.
struct CapacityDoubt {
  std::string parameter;
  std::string provenance;
  double effect = 0.0;  ///< Of one standard error, on the logarithm of the step's time.
};

/// What a prediction takes for given of a machine.
struct CapacityInput {
  std::string what;   ///< "dense peak, bf16"
  std::string value;  ///< With its unit.
  double standard_error = 0.0;
  std::string provenance;
  std::string source;
};

struct CapacityKind {
  std::string name;  ///< The user's word.
  std::string hardware;
  std::string machine;  ///< In words, with its links.
  double price = 0.0;   ///< Of a GPU for an hour; the user's.
  std::string price_date;
  std::string price_source;
  std::int64_t available = 0;
  double power_w = 0.0;  ///< Of one GPU; 0: nobody says.
  double memory_limit_gb = 0.0;
  double link_gb_s = 0.0;
  std::optional<double> network_gb_s;
  std::vector<CapacityInput> inputs;

  std::size_t layouts = 0, fitting = 0, priced = 0, played = 0;  ///< Of all counts of GPUs together.
  std::vector<CapacityRun> runs;                                 ///< One a count of GPUs, ascending.
  std::optional<std::size_t> answer;                             ///< Among the runs.
  std::string reason;                                            ///< Which limit binds, where there is no answer.
  std::vector<CapacitySite> sites;                               ///< Of the answer.
  std::string single;                                            ///< The best strategy that is the same at all sites.
  double step_error = 0.0;            ///< Of the step's time, relative: its parameters' and the model's own together.
  std::vector<CapacityDoubt> doubts;  ///< The largest first; a few.
  std::optional<double> break_even_price;  ///< At which it costs as much as the cheapest other kind.

  [[nodiscard]] const CapacityRun* best() const { return answer ? &runs[*answer] : nullptr; }
};

/// The answer with something else: the same GPUs, spread anew where that may help.
struct WhatIf {
  std::string change;  ///< "network x2"
  TrainingPlan layout;
  double step_s = 0.0;
  Interval days, cost;
  double days_share = 0.0;  ///< Longer than the answer, as a share; below 0: shorter.
  double cost_share = 0.0;
  /// How much more a GPU may cost until the change does not pay: an hour, and over the whole run.
  std::optional<double> break_even_gpu_hour;
  std::optional<double> break_even_gpu;
};

/// Tokens a second over the rate of a kind of links.
struct RateCurve {
  struct Point {
    double times = 1.0;
    double tokens_per_second = 0.0;
  };
  std::string links;  ///< "links", "network"
  std::vector<Point> points;
  std::optional<double> knee;     ///< The rate farthest from the chord.
  std::optional<double> plateau;  ///< The rate that reaches 95 % of the last point's tokens.
  std::optional<double> to_hide;  ///< The least rate that comes within 1 % of what any rate reaches; nothing above 16.
  std::optional<double> to_hide_gb_s;
};

/// One input changed either way, everything else as it is.
struct Sensitivity {
  std::string input;
  double days_low = 0.0, days_high = 0.0;  ///< With the input lower, and higher.
  double cost_low = 0.0, cost_high = 0.0;
};

struct RunPlace {
  std::size_t kind = 0;
  std::size_t run = 0;
};

struct CapacityPlan {
  std::string title;
  std::string model;
  std::string shape;  ///< "80 layers, hidden 8192, 64 heads, 8 of keys and values, FFN 28672"
  double parameters = 0.0;
  double active_parameters = 0.0;
  double flops_per_token = 0.0;  ///< Model FLOPs, forward and backward, attention counted causally.
  double six_n = 0.0;            ///< 6 x active parameters, the usual estimate.
  double tokens = 0.0;
  std::int64_t batch = 0;  ///< Sequences a step.
  std::int64_t seq = 0;
  std::string dtype;
  std::string framework;  ///< That runs the steps; empty: none, and the fastest schedule at every site.
  std::string deadline_text;
  std::optional<double> deadline_days;
  std::optional<double> budget;
  double asked_confidence = 0.5;
  std::string currency;
  double model_error = 0.0;
  std::optional<double> p99_limit_s;
  std::optional<double> power_limit_mw;
  double memory_share = 1.0;
  double failures_per_gpu_hour = 0.0, checkpoint_s = 0.0, restart_s = 0.0;
  double pue = 1.0, energy_price = 0.0;
  double change = 0.0;  ///< Of the sensitivities.
  std::string jitter;
  std::uint64_t seed = 0;
  std::size_t draws = 0;

  std::vector<CapacityKind> kinds;
  std::optional<std::size_t> answer;  ///< Among the kinds.
  std::vector<RunPlace> ties;         ///< Other runs that keep the limits and tie with the best one in what is sought.
  std::string tie_rule;               ///< Why the answer is taken of all that tie: "fewer GPUs"; empty without ties.
  std::vector<RunPlace> pareto;       ///< Runs that no other beats in both days and cost, the shortest first.
  std::optional<std::size_t> knee;    ///< Among those, over the logarithm of days.
  std::vector<WhatIf> what_ifs;       ///< Of the answer, as what follows.
  std::vector<RateCurve> curves;
  std::vector<Sensitivity> sensitivities;

  [[nodiscard]] const CapacityKind* best_kind() const { return answer ? &kinds[*answer] : nullptr; }
};

}  // namespace commfuse
