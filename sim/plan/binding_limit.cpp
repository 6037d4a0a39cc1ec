// SPDX-License-Identifier: Apache-2.0
// Explains why no run of a kind of GPU meets the limits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/check.h"
#include "model/text/amount.h"
#include "model/text/counted.h"
#include "sim/plan/kind_planner.h"

namespace commfuse {

namespace {

constexpr double day = 86400.0;  // seconds

const CapacityRun& min_by(const std::vector<CapacityRun>& runs, double (*value_of)(const CapacityRun&)) {
  return *std::min_element(runs.begin(), runs.end(),
                           [&](const CapacityRun& a, const CapacityRun& b) { return value_of(a) < value_of(b); });
}

/// Returns "1 GPU" or "64 GPUs".
std::string gpus_in_words(std::int64_t count) { return counted(count, "GPU"); }

/// Returns "1 day" or "4.5 days".
std::string days_in_words(double days) {
  const std::string count = fmt::format("{:.4g}", days);
  return fmt::format("{} day{}", count, count == "1" ? "" : "s");
}

double days_of(const CapacityRun& run) { return run.days.value; }
double cost_of(const CapacityRun& run) { return run.cost.value; }
double p99_of(const CapacityRun& run) { return run.step_p99_s; }

std::string no_layout(const PlanFile& file, const CapacityKind& kind, const LayoutSearch& search, std::int64_t limit,
                      const std::string& count_advice) {
  const SearchTally& tally = search.tally();
  if (kind.count && limit < *kind.count) {
    const double needed = static_cast<double>(*kind.count) * kind.power_w * file.pue;
    return fmt::format("limits.power binds: the {} of gpus.{}.count need{} {:.4g} MW, and the limit is {:.4g} MW",
                       gpus_in_words(*kind.count), kind.name, *kind.count == 1 ? "s" : "", needed / 1e6,
                       file.power->value / 1e6);
  }
  if (limit < 1) {
    return fmt::format("limits.power binds: one GPU needs {:.4g} kW, and the limit is {:.4g} kW",
                       kind.power_w * file.pue / 1e3, file.power->value / 1e3);
  }
  if (tally.too_slow) {
    const std::int64_t sequences = search.terms().base.global_batch;
    return fmt::format("{} is too slow: a step of {} takes more than a million seconds at its dense peak", kind.machine,
                       counted(sequences, "sequence"));
  }
  const std::string gpus = kind.count ? fmt::format("the {} of gpus.{}.count", gpus_in_words(limit), kind.name)
                                      : "up to " + gpus_in_words(limit);
  if (tally.layouts == 0) {
    return fmt::format("no layout of {} with batch {} exists on {}; {}", search.model().name,
                       search.terms().base.global_batch, gpus,
                       kind.count ? count_advice : "choose a batch that more degrees divide, or free more degrees");
  }
  if (!tally.refusal.empty()) {
    return tally.refusal;
  }
  const double least_memory = static_cast<double>(tally.least_memory->count) / 1e9;
  return fmt::format(
      "memory binds: the smallest layout on {} needs {:.1f} GB per GPU, {:.2f} times the {:.1f} GB that "
      "limits.memory_share allows{}",
      gpus, least_memory, least_memory / kind.memory_limit_gb, kind.memory_limit_gb,
      kind.count ? "; " + count_advice : "");
}

std::string why_no_more(const PlanFile& file, const CapacityKind& kind, const CapacityRun& run, std::int64_t limit) {
  if (kind.count) {
    return fmt::format(" (gpus.{}.count)", kind.name);
  }
  const std::int64_t node = std::max<std::int64_t>(1, run.gpus / run.nodes);
  if (limit < kind.available && run.gpus + node > limit) {
    return fmt::format(" (all that limits.power of {:.4g} MW allows)", file.power->value / 1e6);
  }
  return run.gpus + node > kind.available ? " (all that are available)" : "";
}

constexpr double min_goodput = 0.01;  // below this goodput, a run makes hardly any progress

std::string failures_bind(const PlanFile& file, const CapacityRun& run) {
  const double seconds_between = 3600.0 / (static_cast<double>(run.gpus) * file.failures.per_gpu_hour);
  return fmt::format(
      "failures bind: {} fail{} every {:.3g} s on average, a checkpoint takes {:.3g} s and a restart {:.3g} s, so "
      "training makes almost no progress; correct failures.per_gpu_hour, or shorten failures.restart",
      gpus_in_words(run.gpus), run.gpus == 1 ? "s" : "", seconds_between, file.failures.checkpoint.count(),
      file.failures.restart.count());
}

std::string deadline_binds(const PlanFile& file, const CapacityKind& kind, const CapacityRun& run, std::int64_t limit) {
  const double allowed = file.deadline->count() / day;
  return fmt::format("the deadline binds: the shortest run takes {} days on {}{}, {:.2f} times the allowed {}",
                     amount_of_days(days_of(run)), gpus_in_words(run.gpus), why_no_more(file, kind, run, limit),
                     days_of(run) / allowed, days_in_words(allowed));
}

/// `remaining` has the runs that meet the other limits, at least one.
std::string budget_binds(const PlanFile& file, const CapacityKind& kind, const std::vector<CapacityRun>& remaining) {
  const CapacityRun& run = min_by(remaining, cost_of);
  const CapacityRun& cheapest = min_by(kind.runs, cost_of);
  const bool is_cheapest = cost_of(run) <= cost_of(cheapest);
  std::string text =
      fmt::format("the budget binds: the cheapest run{} costs {} on {}, {:.2f} times the allowed {}",
                  is_cheapest ? "" : " that meets the other limits", amount_of_money(file.currency, cost_of(run)),
                  gpus_in_words(run.gpus), cost_of(run) / *file.budget, amount_of_money(file.currency, *file.budget));
  const double allowed = file.deadline ? file.deadline->count() / day : 0.0;
  if (!is_cheapest && file.deadline && days_of(cheapest) > allowed) {
    text +=
        fmt::format("; the cheapest of all, {} on {}, misses the deadline: it takes {} days, and the limit is {:.4g}",
                    amount_of_money(file.currency, cost_of(cheapest)), gpus_in_words(cheapest.gpus),
                    amount_of_days(days_of(cheapest)), allowed);
  }
  return text;
}

/// Returns the runs for which `meets` is true.
template <class Meets>
std::vector<CapacityRun> runs_meeting(const std::vector<CapacityRun>& runs, const Meets& meets) {
  std::vector<CapacityRun> meeting;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(meeting), meets);
  return meeting;
}

}  // namespace

std::string binding_limit(const PlanFile& file, const CapacityKind& kind, const LayoutSearch& search,
                          std::int64_t max_gpus, const std::string& count_advice) {
  if (kind.runs.empty()) {
    return no_layout(file, kind, search, max_gpus, count_advice);
  }
  if (const CapacityRun& shortest = min_by(kind.runs, days_of); shortest.goodput.value < min_goodput) {
    return failures_bind(file, shortest);
  }
  std::vector<CapacityRun> remaining = kind.runs;
  if (file.p99_step) {
    const double limit = file.p99_step->count();
    remaining = runs_meeting(remaining, [&](const CapacityRun& run) { return p99_of(run) <= limit; });
    if (remaining.empty()) {
      const CapacityRun& run = min_by(kind.runs, p99_of);
      return fmt::format(
          "limits.p99_step binds: the shortest p99 of a step, on {}, is {:.4g} s, {:.4g} times the allowed {:.4g} "
          "s",
          gpus_in_words(run.gpus), p99_of(run), p99_of(run) / limit, limit);
    }
  }
  if (file.deadline) {
    const double allowed = file.deadline->count() / day;
    const CapacityRun shortest = min_by(remaining, days_of);
    remaining = runs_meeting(remaining, [&](const CapacityRun& run) { return days_of(run) <= allowed; });
    if (remaining.empty()) {
      return deadline_binds(file, kind, shortest, max_gpus);
    }
  }
  if (file.budget) {
    if (cost_of(min_by(remaining, cost_of)) > *file.budget) {
      return budget_binds(file, kind, remaining);
    }
  }
  const CapacityRun& likeliest = min_by(remaining, [](const CapacityRun& run) { return -run.confidence; });
  // A chance just below the required one must not round up to it.
  const double required = 100.0 * file.confidence;
  const double chance = std::min(std::round(100.0 * likeliest.confidence), std::ceil(required) - 1.0);
  return fmt::format(
      "confidence binds: the chance that the likeliest run, on {}, meets the limits is {:.0f}%, and {:.4g}% is "
      "required",
      gpus_in_words(likeliest.gpus), chance, required);
}

}  // namespace commfuse
