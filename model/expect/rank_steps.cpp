// SPDX-License-Identifier: Apache-2.0
#include "model/expect/rank_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "model/analysis/median.h"
#include "model/check.h"
#include "model/expect/evidence.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

constexpr std::size_t least_ranks = 3;
constexpr std::size_t least_steps = 3;

constexpr std::array texts{
    RankFaultText{
        RankFault::slow_compute, "slow_compute",
        "computes slowly: low clocks, heat, a power cap, another process on its GPU, or more work than the others",
        "nvidia-smi --query-gpu=index,clocks.sm,clocks_event_reasons.active,power.draw,temperature.gpu "
        "--format=csv"},
    RankFaultText{RankFault::slow_send, "slow_send",
                  "sends slowly: its NIC or a link of its GPU is slower than it should be",
                  "nvidia-smi nvlink --status; ibstat"},
    RankFaultText{RankFault::slow_host, "slow_host",
                  "launches slowly, so its GPU waits: data loading, CPU power saving, busy cores or a wrong NUMA node",
                  "cpupower frequency-info --policy; numactl --show"},
    RankFaultText{RankFault::jitter, "jitter",
                  "is late in some steps: another process, garbage collection, page faults or throttling",
                  "nvidia-smi --query-gpu=index,clocks.sm,clocks_event_reasons.active --format=csv -l 1"},
    RankFaultText{RankFault::late, "late", "arrives late at collectives, so the others wait for it",
                  "commfuse-validate doctor"},
    RankFaultText{RankFault::slow, "slow", "takes longer; the file does not say whether it computes, sends or waits",
                  "commfuse-validate doctor"}};

/// Assumed minimum of the standard deviation between healthy ranks of a job. A larger value estimated from the job
/// replaces it.
constexpr double least_spread = 0.025;          // in ln(time)
constexpr double least_spread_of_share = 0.02;  // share of the step
/// Assumed noise of one step, if there are too few steps to estimate it: a standard deviation of ln(time), or a share
/// of the step.
constexpr double assumed_step_noise = 0.03;
/// A step is late if it exceeds the rank's own median by more than `late_from` and by more than `late_noise` times the
/// noise of all ranks.
constexpr double late_from = 0.08;
constexpr double late_noise = 4.0;
/// Smallest share of late steps assumed for a healthy rank, because a few steps cannot show a smaller one.
constexpr double least_late_share = 0.01;

/// Returns the standard deviation, estimated from the median distance.
double spread_of(const std::vector<double>& values) {
  constexpr double deviations_per_distance = 1.4826;  // for normal errors
  const double center = median(values);
  std::vector<double> distances;
  for (const double value : values) {
    distances.push_back(std::abs(value - center));
  }
  return deviations_per_distance * median(std::move(distances));
}

using Get = std::optional<double> (*)(const RankStep& step);

/// A quantity that is measured for every rank in every step.
struct RankNumber {
  RankFault fault = RankFault::slow;
  Get get = nullptr;
  bool is_share = false;  ///< Compare differences, as shares of the step; otherwise compare logarithms.
  bool is_less = false;   ///< The rank at fault has a smaller number than other ranks.
  bool has_jitter = false;
};

/// Numbers of one rank by step, relative to the median of all ranks.
struct RankSeries {
  std::int64_t rank = 0;
  std::vector<double> steps;
  double median = 0.0;
  double noise = 0.0;  ///< Standard error of the median.
};

struct Series {
  std::vector<RankSeries> ranks;
  std::size_t steps = 0;
  double spread = 0.0;  ///< Standard deviation between healthy ranks.
  double noise = 0.0;   ///< Noise of a step: median over the ranks.
  double usual = 0.0;   ///< Median of the number divided by the median step time.
};

void add_medians(Series& series, bool is_share) {
  std::vector<double> medians;
  std::vector<double> noises;
  for (RankSeries& rank : series.ranks) {
    rank.median = median(rank.steps);
    medians.push_back(rank.median);
    noises.push_back(rank.steps.size() < least_steps ? assumed_step_noise : spread_of(rank.steps));
  }
  series.noise = median(noises);
  for (std::size_t i = 0; i < series.ranks.size(); ++i) {
    constexpr double median_per_mean = 1.2533;  // standard error of a median divided by the standard error of a mean
    const double noise = std::max(noises[i], series.noise);
    series.ranks[i].noise = median_per_mean * noise / std::sqrt(static_cast<double>(series.ranks[i].steps.size()));
  }
  series.spread = std::max(is_share ? least_spread_of_share : least_spread, spread_of(medians));
}

/// Returns the number of a rank in a step; nullopt if it is missing, or is 0 although logarithms are compared.
std::optional<double> comparable_number(const RankStep& rank_step, const RankNumber& quantity) {
  const std::optional<double> number = quantity.get(rank_step);
  return number && (quantity.is_share || *number > 0.0) ? number : std::nullopt;
}

/// Returns the steps of the ranks that have the number in some step. The others, such as a rank whose trace has no
/// compute, cannot be compared, and must not hide those that can.
std::vector<RankStep> steps_of_ranks_with(const RankNumber& quantity, std::span<const RankStep> measured) {
  std::set<std::int64_t> ranks;
  for (const RankStep& rank_step : measured) {
    if (comparable_number(rank_step, quantity)) {
      ranks.insert(rank_step.rank);
    }
  }
  std::vector<RankStep> steps;
  std::copy_if(measured.begin(), measured.end(), std::back_inserter(steps),
               [&](const RankStep& rank_step) { return ranks.contains(rank_step.rank); });
  return steps;
}

/// Returns the series over the steps in which no rank lacks the number, apart from ranks that never have it; empty if
/// there is no such step.
Series series_of(std::span<const RankStep> all_measured, const RankNumber& quantity, double step_us) {
  const std::vector<RankStep> measured = steps_of_ranks_with(quantity, all_measured);
  std::set<std::int64_t> incomplete_steps;
  for (const RankStep& rank_step : measured) {
    if (!comparable_number(rank_step, quantity)) {
      incomplete_steps.insert(rank_step.step);
    }
  }
  std::map<std::int64_t, std::vector<double>> by_step;
  std::vector<double> numbers;
  for (const RankStep& rank_step : measured) {
    if (!incomplete_steps.contains(rank_step.step)) {
      numbers.push_back(*comparable_number(rank_step, quantity));
      by_step[rank_step.step].push_back(numbers.back());
    }
  }
  if (numbers.empty()) {
    return {};
  }
  std::map<std::int64_t, double> step_medians;
  for (auto& [step, values] : by_step) {
    step_medians[step] = median(std::move(values));
  }
  std::map<std::int64_t, RankSeries> by_rank;
  for (const RankStep& rank_step : measured) {
    if (incomplete_steps.contains(rank_step.step)) {
      continue;
    }
    const double number = *comparable_number(rank_step, quantity);
    const double off = quantity.is_share ? (number - step_medians[rank_step.step]) / step_us
                                         : math::log(number / step_medians[rank_step.step]);
    by_rank[rank_step.rank].rank = rank_step.rank;
    by_rank[rank_step.rank].steps.push_back(quantity.is_less ? -off : off);
  }
  Series series{.ranks = {}, .steps = step_medians.size(), .usual = median(std::move(numbers)) / step_us};
  for (auto& [rank, rank_series] : by_rank) {
    series.ranks.push_back(std::move(rank_series));
  }
  add_medians(series, quantity.is_share);
  return series;
}

/// A rank, a fault, and how much likelier the rank's numbers are with the fault than without.
struct Candidate {
  SuspectedRank suspect;
  double log_ratio = 0.0;  ///< ln of the likelihood ratio, averaged over the assumed sizes of the fault
  double cost = 0.0;       ///< Time that other ranks wait, as a share of the step.
};

/// Returns ln of the likelihood ratio, averaged over the assumed sizes of the fault. `log_ratio` returns ln of the
/// ratio for one size.
template <class Sizes, class LogRatio>
double log_mean_exp(const Sizes& sizes, const LogRatio& log_ratio) {
  std::vector<double> ratios;
  for (const double size : sizes) {
    ratios.push_back(log_ratio(size));
  }
  const double largest = *std::max_element(ratios.begin(), ratios.end());
  double sum = 0.0;
  for (const double ratio : ratios) {
    sum += math::exp(ratio - largest);
  }
  return largest + math::log(sum / static_cast<double>(ratios.size()));
}

/// Returns ln of the density of a normal distribution at the distance `off` from its mean, without the constant.
double log_density_of_normal(double off, double variance) {
  return -0.5 * (off * off / variance + math::log(variance));
}

void add_slow(const Series& series, const RankNumber& quantity, std::vector<Candidate>& candidates) {
  constexpr std::array factors{1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 5.0};
  constexpr std::array shares{0.06, 0.12, 0.25, 0.5, 1.0, 2.0};
  for (const RankSeries& rank : series.ranks) {
    const double variance = series.spread * series.spread + rank.noise * rank.noise;
    const auto log_ratio = [&](double size) {
      const double size_error = pattern_error * size;
      return log_density_of_normal(rank.median - size, variance + size_error * size_error) -
             log_density_of_normal(rank.median, variance);
    };
    Candidate candidate{.suspect = {.rank = rank.rank, .fault = quantity.fault}};
    if (quantity.is_share) {
      candidate.log_ratio = log_mean_exp(shares, log_ratio);
      candidate.suspect.degree = rank.median;
      candidate.cost = rank.median;
    } else {
      candidate.log_ratio = log_mean_exp(factors, [&](double factor) { return log_ratio(math::log(factor)); });
      candidate.suspect.degree = math::exp(rank.median);
      candidate.cost = series.usual * (candidate.suspect.degree - 1.0);
    }
    candidates.push_back(candidate);
  }
}

struct LateSteps {
  double late = 0.0;
  double steps = 0.0;
  double cost = 0.0;  ///< Sum of the lateness of the late steps, as shares of the step.
};

/// Counts the steps that exceed the rank's median by more than `from`. `usual` is Series::usual.
LateSteps late_steps(const RankSeries& rank, bool is_share, double usual, double from) {
  LateSteps counted{.steps = static_cast<double>(rank.steps.size())};
  for (const double step : rank.steps) {
    if (step - rank.median > from) {
      counted.late += 1.0;
      counted.cost += is_share ? step - rank.median : usual * (math::exp(step) - math::exp(rank.median));
    }
  }
  return counted;
}

void add_jitter(const Series& series, const RankNumber& quantity, std::vector<Candidate>& candidates) {
  constexpr std::array factors{3.0, 10.0, 30.0};
  constexpr double max_share = 0.9;
  const double from = std::max(late_from, late_noise * series.noise);
  std::vector<LateSteps> ranks;
  LateSteps job;
  for (const RankSeries& rank : series.ranks) {
    ranks.push_back(late_steps(rank, quantity.is_share, series.usual, from));
    job.late += ranks.back().late;
    job.steps += ranks.back().steps;
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const LateSteps& counted = ranks[i];
    const double usual_share =
        std::max(least_late_share, (job.late - counted.late + 1.0) / (job.steps - counted.steps + 2.0));
    const auto log_ratio = [&](double factor) {
      const double share = std::max(usual_share, std::min(max_share, factor * usual_share));
      return counted.late * math::log(share / usual_share) +
             (counted.steps - counted.late) * math::log((1.0 - share) / (1.0 - usual_share));
    };
    candidates.push_back(
        {.suspect = {.rank = series.ranks[i].rank, .fault = RankFault::jitter, .degree = counted.late / counted.steps},
         .log_ratio = log_mean_exp(factors, log_ratio),
         .cost = counted.cost / counted.steps});
  }
}

/// Returns the numbers to compare. More columns in the file identify the cause better.
std::vector<RankNumber> quantities_of(std::span<const RankStep> measured) {
  const auto has = [&](std::optional<double> RankStep::*number) {
    return std::any_of(measured.begin(), measured.end(),
                       [&](const RankStep& step) { return (step.*number).has_value(); });
  };
  const bool has_compute = has(&RankStep::compute_us);
  const bool has_idle = has(&RankStep::idle_us);
  std::vector<RankNumber> quantities;
  if (has_compute) {
    quantities.push_back({.fault = RankFault::slow_compute,
                          .get = [](const RankStep& step) { return step.compute_us; },
                          .has_jitter = true});
  }
  if (has_idle) {
    quantities.push_back({.fault = RankFault::slow_host,
                          .get = [](const RankStep& step) { return step.idle_us; },
                          .is_share = true,
                          .has_jitter = !has_compute});
  }
  if (has(&RankStep::send_us)) {
    quantities.push_back({.fault = RankFault::slow_send, .get = [](const RankStep& step) { return step.send_us; }});
  }
  if (!has_compute && !has_idle && has(&RankStep::communication_us)) {
    quantities.push_back({.fault = RankFault::late,
                          .get = [](const RankStep& step) { return step.communication_us; },
                          .is_share = true,
                          .is_less = true,
                          .has_jitter = true});
  }
  if (quantities.empty()) {
    quantities.push_back({.fault = RankFault::slow,
                          .get = [](const RankStep& step) { return std::optional(step.time_us); },
                          .has_jitter = true});
  }
  return quantities;
}

/// Names each rank whose likeliest fault is sufficient evidence by itself, and the rank whose fault is the likeliest of
/// all.
void name_ranks(const std::vector<Candidate>& candidates, const std::vector<double>& odds, double false_alarms,
                StepJudgement& judgement) {
  std::map<std::int64_t, std::size_t> likeliest_of_rank;
  std::size_t likeliest = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto [entry, is_new] = likeliest_of_rank.try_emplace(candidates[i].suspect.rank, i);
    entry->second = odds[i] > odds[entry->second] ? i : entry->second;
    likeliest = odds[i] > odds[likeliest] ? i : likeliest;
  }
  double cost = 0.0;
  for (const auto& [rank, i] : likeliest_of_rank) {
    if (odds[i] >= 1.0 / false_alarms || i == likeliest) {
      SuspectedRank suspect = candidates[i].suspect;
      suspect.probability = 1.0 - 1.0 / (1.0 + odds[i] * bad_share / (1.0 - bad_share));
      judgement.suspects.push_back(suspect);
      cost = std::max(cost, candidates[i].cost);
    }
  }
  std::stable_sort(judgement.suspects.begin(), judgement.suspects.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  judgement.slowdown = 1.0 + std::max(0.0, cost);
  judgement.severity = severity_of(judgement.slowdown);
}

}  // namespace

const RankFaultText& text_of(RankFault fault) {
  const auto* const text =
      std::find_if(texts.begin(), texts.end(), [&](const RankFaultText& known) { return known.fault == fault; });
  check(text != texts.end(), "every fault of a rank has a description");
  return *text;
}

StepJudgement judge_steps(std::span<const RankStep> measured, double false_alarms) {
  check(false_alarms > 0.0 && false_alarms < 0.5, "the false-alarm rate is below one half");
  StepJudgement judgement;
  std::map<std::int64_t, std::size_t> ranks;
  std::map<std::int64_t, std::size_t> steps;
  std::vector<double> times;
  for (const RankStep& rank_step : measured) {
    ++ranks[rank_step.rank];
    ++steps[rank_step.step];
    times.push_back(rank_step.time_us);
  }
  judgement.ranks = ranks.size();
  judgement.steps = steps.size();
  if (measured.empty()) {
    return judgement;
  }
  judgement.step_us = median(std::move(times));
  std::vector<Candidate> candidates;
  for (const RankNumber& quantity : quantities_of(measured)) {
    const Series series = series_of(measured, quantity, judgement.step_us);
    if (series.ranks.size() >= least_ranks) {
      add_slow(series, quantity, candidates);
      if (quantity.has_jitter && series.steps >= least_steps) {
        add_jitter(series, quantity, candidates);
      }
    }
  }
  if (candidates.empty()) {
    return judgement;
  }
  std::vector<double> odds;
  for (const Candidate& candidate : candidates) {
    constexpr double largest = 600.0;  // e^600 is still in the range of a double
    odds.push_back(math::exp(std::min(largest, candidate.log_ratio)) / static_cast<double>(candidates.size()));
    judgement.odds += odds.back();
  }
  judgement.healthy_probability = 1.0 / (1.0 + judgement.odds * bad_share / (1.0 - bad_share));
  if (judgement.odds >= 1.0 / false_alarms) {
    judgement.health = Health::bad;
    name_ranks(candidates, odds, false_alarms, judgement);
  } else if (judgement.steps >= least_steps) {
    judgement.health = Health::healthy;
  }
  return judgement;
}

}  // namespace commfuse
