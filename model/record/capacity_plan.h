// SPDX-License-Identifier: Apache-2.0
// Result of planning (commfuse.capacity/1): GPUs, time and money of a whole training run, by kind of GPU, and the
// effect of changes. Seconds, days, hours and amounts in the user's currency are doubles, because they are results and
// not clock times.
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

/// Result for the inputs as given, and its 90% range: 5% of all draws are below `low`, 5% above `high`.
struct Interval {
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
};

/// A number of GPUs of one kind, with its best layout.
struct CapacityRun {
  std::string kind;
  std::int64_t gpus = 1;
  std::int64_t nodes = 1;
  TrainingPlan layout;
  double excess_over_fastest = 0.0;  ///< Relative excess of its step time over that of the fastest layout.
  std::string layout_rule;  ///< Why it is preferred to layouts that tie with it: "less memory"; empty without a tie.

  // One step:
  Interval step_s;
  double step_p50_s = 0.0, step_p95_s = 0.0, step_p99_s = 0.0,
         step_p99_9_s = 0.0;  ///< percentiles over machines whose GPUs differ in speed at random
  /// Step time if all GPUs were equally fast; the rest of the step is the wait for the slowest GPU.
  double step_equal_gpus_s = 0.0;
  double compute_s = 0.0, waiting_s = 0.0, gradients_s = 0.0, optimizer_s = 0.0;  ///< Parts that add up to the step.
  Interval tokens_per_second;
  Interval mfu;
  double hfu = 0.0;
  double memory_gb = 0.0;  ///< Memory of the fullest GPU.

  // The whole run:
  Interval goodput;
  double checkpoint_every_s = 0.0;
  double failures = 0.0;
  Interval days, gpu_hours, cost, cost_per_mtok;
  std::optional<Interval> energy_mwh;  ///< Present if the power is known, like the next member.
  std::optional<double> power_mw;
  double confidence = 0.0;  ///< Probability that deadline and budget are met.
  std::string misses;       ///< Limits that the run does not meet: "deadline, budget"; empty if none.
};

/// A GEMM next to a collective, for one micro-batch.
struct CapacitySite {
  std::string name;
  std::string strategy;
  std::string schedule;  ///< With its parameters: "commfuse (ring, g=2)".
  double serial_us = 0.0;
  double best_us = 0.0;
  double compute_us = 0.0;
  std::optional<double> rate_to_hide;  ///< Factor on the node's links; nullopt if a factor of 16 is not enough.
};

/// Parameter of the machine or of the framework whose error affects the step.
struct CapacityDoubt {
  std::string parameter;
  std::string provenance;
  double effect = 0.0;  ///< Change of the logarithm of the step's time per standard error.
};

/// Assumption about a machine, on which the prediction depends.
struct CapacityInput {
  std::string what;   ///< For example "dense peak, bf16".
  std::string value;  ///< With its unit.
  double standard_error = 0.0;
  std::string provenance;
  std::string source;
};

/// A smaller number of GPUs that trains at least as fast as the user's exact number.
struct SmallerCount {
  std::int64_t gpus = 0;
  double days = 0.0;
  double cost = 0.0;
};

struct CapacityKind {
  std::string name;  ///< Name that the user chose.
  std::string hardware;
  std::string machine;  ///< In words, with its links.
  double price = 0.0;   ///< The user's price of one GPU for one hour.
  std::string price_date;
  std::string price_source;
  std::int64_t available = 0;
  std::optional<std::int64_t> count;  ///< The user's exact number of GPUs; otherwise the plan chooses.
  double power_w = 0.0;               ///< Power of one GPU; 0 if unknown.
  double memory_limit_gb = 0.0;
  double link_gb_s = 0.0;
  std::optional<double> network_gb_s;
  std::vector<CapacityInput> inputs;

  /// Numbers of layouts that were considered, that fit in memory, and that were priced, over all counts of GPUs.
  std::size_t layouts = 0, fitting = 0, priced = 0;
  std::vector<CapacityRun> runs;      ///< One run per count of GPUs, ascending.
  std::optional<std::size_t> answer;  ///< Index in `runs`.
  std::string reason;                 ///< The limit that binds, if there is no answer.
  /// Smallest number of GPUs beyond `runs` that meets the deadline. Absent if a run meets it, if even eight times the
  /// planned GPUs do not, and without a deadline or a network.
  std::optional<std::int64_t> gpus_for_deadline;
  /// The fastest of half, a quarter and so on of `count`, if it is at least as fast as `count`.
  std::optional<SmallerCount> smaller;
  std::vector<CapacitySite> sites;  ///< Sites of the answer.
  std::string single;               ///< Best strategy if all sites use the same one.
  /// Relative standard error of the step's time, from the parameters and the model's residual together.
  double step_error = 0.0;
  std::vector<CapacityDoubt> doubts;  ///< The largest doubts, in descending order.
  /// Price of one GPU per hour at which this kind costs as much as the cheapest other kind. Absent if this kind or all
  /// others lack an answer, or if the energy of this kind alone costs more than the other kind.
  std::optional<double> break_even_price;

  [[nodiscard]] const CapacityRun* best() const { return answer ? &runs[*answer] : nullptr; }
};

/// The answer after one change: the same GPUs, with a new layout if that may help.
struct WhatIf {
  std::string change;  ///< For example "network x2".
  TrainingPlan layout;
  double step_s = 0.0;
  Interval days, cost;
  double days_share = 0.0;  ///< Additional time as a share of the answer's time; negative if shorter.
  double cost_share = 0.0;
  /// Additional price at which the change stops paying off: per GPU-hour, and per GPU over the whole run.
  std::optional<double> break_even_gpu_hour;
  std::optional<double> break_even_gpu;
};

/// Tokens per second at several rates of one kind of link.
struct RateCurve {
  struct Point {
    double factor = 1.0;  ///< Factor on the rate of the links.
    double tokens_per_second = 0.0;
  };
  std::string links;  ///< "links" or "network".
  std::vector<Point> points;
  std::optional<double> knee;     ///< Factor of the point farthest from the chord (knee_of).
  std::optional<double> plateau;  ///< Factor that reaches 95% of the last point's tokens per second.
  /// Lowest factor at which the tokens per second are within 1% of those over nearly free links; nullopt if even a
  /// factor of 16 is not enough.
  std::optional<double> to_hide;
  std::optional<double> to_hide_gb_s;
};

/// One input raised and lowered, with every other input unchanged.
struct Sensitivity {
  std::string input;
  double days_low = 0.0, days_high = 0.0;  ///< Days with the lower input, and with the higher input.
  double cost_low = 0.0, cost_high = 0.0;
};

/// Evidence behind CapacityPlan::model_error.
enum class ModelErrorSource : std::uint8_t {
  file,                  ///< stated in the plan file
  measured_steps,        ///< measured steps in known frameworks, as for rows of `run`
  steps_before_settings  ///< measured steps that were predicted without the settings of their framework
};

struct RunPlace {
  std::size_t kind = 0;  ///< Index in CapacityPlan::kinds.
  std::size_t run = 0;   ///< Index in CapacityKind::runs.
};

struct CapacityPlan {
  std::string title;
  std::string model;
  std::string shape;  ///< For example "80 layers, hidden 8192, 64 heads, 8 of keys and values, FFN 28672".
  double parameters = 0.0;
  double active_parameters = 0.0;
  double flops_per_token = 0.0;  ///< Model FLOPs, forward and backward, with attention counted under the causal mask.
  double six_n = 0.0;            ///< 6 x active parameters, the usual estimate of FLOPs per token.
  double tokens = 0.0;
  std::int64_t batch = 0;  ///< Sequences per step.
  std::int64_t seq = 0;
  std::string dtype;
  std::string framework;  ///< Framework that runs the steps; empty: none, with the fastest schedule at every site.
  std::string deadline_text;
  std::optional<double> deadline_days;
  std::optional<double> budget;
  double asked_confidence = 0.5;
  std::string currency;
  double model_error = 0.0;  ///< Relative error of a step without the errors of the machine's parameters.
  ModelErrorSource model_error_source = ModelErrorSource::measured_steps;  ///< Source before a step was measured.
  double model_error_of_run = 0.0;  ///< The error that rows of `run` use in its place.
  bool has_measured_step = false;   ///< A measured step has reduced the error of the answer.
  std::optional<double> p99_limit_s;
  std::optional<double> power_limit_mw;
  double memory_share = 1.0;
  double failures_per_gpu_hour = 0.0, checkpoint_s = 0.0, restart_s = 0.0;
  double pue = 1.0, energy_price = 0.0;
  double change = 0.0;  ///< Relative change for sensitivities.
  std::string jitter;
  std::uint64_t seed = 0;
  std::size_t draws = 0;

  std::vector<CapacityKind> kinds;
  std::optional<std::size_t> answer;  ///< Index in `kinds`.
  /// Other runs that meet the limits and tie with the best run in the objective.
  std::vector<RunPlace> ties;
  /// Why the answer is preferred to the first of the ties: "fewer days"; empty without ties.
  std::string tie_rule;
  std::vector<RunPlace> pareto;     ///< Runs that no other run beats in both days and cost, the shortest first.
  std::optional<std::size_t> knee;  ///< Index in `pareto`: the knee of cost against the logarithm of days (knee_of).
  std::vector<WhatIf> what_ifs;     ///< Computed for the answer, like the members below.
  std::vector<RateCurve> curves;
  std::vector<Sensitivity> sensitivities;

  [[nodiscard]] const CapacityKind* best_kind() const { return answer ? &kinds[*answer] : nullptr; }
};

}  // namespace commfuse
