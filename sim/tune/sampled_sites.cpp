// SPDX-License-Identifier: Apache-2.0
#include "sim/tune/sampled_sites.h"

#include <algorithm>
#include <cmath>

#include "model/check.h"
#include "sim/step/group_link.h"

namespace commfuse {

namespace {

/// A candidate schedule, with its runs in the step.
struct Candidate {
  SampledSite sampled;
  SiteRuns runs;
  Duration without_jitter{};  ///< Time of one run with the slowest GPU and links, but no jitter from run to run.
};

/// Returns the number of passes in the step's time: the passes of one stage, and the passes of other stages for which
/// it waits.
std::int64_t passes_of(const TrainingPlan& plan) {
  return plan.micro_batches() + (plan.pipeline - 1 + plan.interleave - 1) / plan.interleave;
}

class Chooser {
 public:
  Chooser(const StepPoint& point, SiteTimes& times, const TuneOptions& options)
      : point_(point),
        times_(times),
        options_(options),
        slowest_(slowest_of(point.plan.gpus(), options.rank_sigma, Probability{0.99})),
        groups_(point.plan.gpus() / point.plan.tensor) {
    check(options.monte_carlo.jitter != nullptr && options.kernel_jitter != nullptr, "sampling sites needs a jitter");
  }

  std::pair<StepTail, StepTail> choose(std::vector<TunedSite>& sites) {
    const std::vector<LayerSite> layer_sites_of_plan = layer_sites(*point_.model, point_.plan);
    for (std::size_t i = 0; i < sites.size(); ++i) {
      sites_.push_back(candidates(layer_sites_of_plan[i]));
      by_mean_.push_back(least_mean(sites_.back()));
    }
    by_p99_ = least_p99();
    const bool p99 = options_.minimize == Minimize::p99;
    // tail() of the chosen schedules comes last, so that later predictions use them.
    const StepTail other = tail(sites, p99 ? by_mean_ : by_p99_);
    const StepTail chosen = tail(sites, p99 ? by_p99_ : by_mean_);
    for (std::size_t i = 0; i < sites.size(); ++i) {
      sites[i].sampled = SampledChoice{serial_of(sites_[i]), at(i, by_mean_).sampled, at(i, by_p99_).sampled};
      sites[i].best = at(i, p99 ? by_p99_ : by_mean_).sampled.schedule;
    }
    return {chosen, other};
  }

 private:
  using Choice = std::vector<std::size_t>;  // by site

  [[nodiscard]] const Candidate& at(std::size_t site, const Choice& choice) const { return sites_[site][choice[site]]; }

  std::vector<Candidate> candidates(const LayerSite& site) {
    const SitePoint point = site_point(point_.plan, site.shape, site.scope);
    MonteCarloOptions kernels = options_.monte_carlo;
    kernels.jitter = options_.kernel_jitter;
    const Slowdown slowdown{.kernels = slowest_,
                            .collectives = slowest_of(point.ranks, point_.communication_sigma),
                            .exchanges = slowest_of(2, point_.communication_sigma)};
    const std::int64_t layers = (site.layers + point_.plan.pipeline - 1) / point_.plan.pipeline;
    const bool recomputes = !site.backward && point_.plan.recompute == Recompute::full;
    std::vector<Candidate> candidates;
    for (const SampledSite& sampled : times_.sampled(point, strategies_for_steps(), options_.monte_carlo)) {
      const SampledTimes in_step = times_.sampled(point, sampled.schedule, kernels, slowest_);
      const Duration without_jitter = times_.slowed(point, sampled.schedule, slowdown);
      candidates.push_back({sampled,
                            {.runs = layers * passes_of(point_.plan) * (recomputes ? 2 : 1),
                             .excess = to_seconds(in_step.mean) - to_seconds(without_jitter),
                             .deviation = in_step.deviation},
                            without_jitter});
    }
    return candidates;
  }

  /// Returns the index of the candidate with the smallest mean; on ties the first, which is the fastest without jitter.
  static std::size_t least_mean(const std::vector<Candidate>& candidates) {
    const auto least = std::min_element(
        candidates.begin(), candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.sampled.times.mean < b.sampled.times.mean; });
    return static_cast<std::size_t>(least - candidates.begin());
  }

  static SampledSite serial_of(const std::vector<Candidate>& candidates) {
    const auto serial = std::find_if(candidates.begin(), candidates.end(), [](const Candidate& candidate) {
      return candidate.sampled.schedule.strategy == &serial_strategy;
    });
    check(serial != candidates.end(), "serial is among the strategies");
    return serial->sampled;
  }

  /// Returns the time of all sites' runs when the slowest GPU and the runs' own jitter are both at their p99.
  [[nodiscard]] double runs_at_p99(const Choice& choice) const {
    double time = 0.0;
    double variance = 0.0;
    for (std::size_t site = 0; site < sites_.size(); ++site) {
      const Candidate& candidate = at(site, choice);
      const auto runs = static_cast<double>(candidate.runs.runs);
      time += runs * (to_seconds(candidate.without_jitter) + candidate.runs.excess);
      variance += runs * candidate.runs.deviation * candidate.runs.deviation;
    }
    return time + deviations_at_p99(groups_) * std::sqrt(variance);
  }

  /// Starts from the schedules with the smallest mean and changes one site after another, as long as the p99 falls.
  [[nodiscard]] Choice least_p99() const {
    Choice choice = by_mean_;
    double least = runs_at_p99(choice);
    for (bool helps = true; helps;) {
      helps = false;
      for (std::size_t site = 0; site < sites_.size(); ++site) {
        for (std::size_t candidate = 0; candidate < sites_[site].size(); ++candidate) {
          Choice other = choice;
          other[site] = candidate;
          if (const double time = runs_at_p99(other); time < least) {
            least = time;
            choice = other;
            helps = true;
          }
        }
      }
    }
    return choice;
  }

  /// Returns the percentiles of the step with these schedules. Later predictions of the step use them too.
  StepTail tail(const std::vector<TunedSite>& sites, const Choice& choice) {
    StepSpread spread{.gpus = point_.plan.gpus(), .rank_sigma = options_.rank_sigma, .groups = groups_};
    for (std::size_t i = 0; i < sites.size(); ++i) {
      times_.prefer(site_point(point_.plan, sites[i].shape, sites[i].scope), at(i, choice).sampled.schedule);
      spread.add(at(i, choice).runs);
    }
    StepPoint point = point_;
    point.rank_sigma = 0.0;
    spread.equal_gpus = predict_step(point, times_).time;
    constexpr double slower = 0.1;
    point.slowdown = 1.0 + slower;
    spread.per_slowdown = to_seconds(predict_step(point, times_).time - spread.equal_gpus) / slower;
    return tail_of(spread);
  }

  const StepPoint& point_;
  SiteTimes& times_;
  const TuneOptions& options_;
  double slowest_;
  std::int64_t groups_;
  std::vector<std::vector<Candidate>> sites_;
  Choice by_mean_;
  Choice by_p99_;
};

}  // namespace

std::pair<StepTail, StepTail> choose_by_samples(const StepPoint& point, SiteTimes& times, const TuneOptions& options,
                                                std::vector<TunedSite>& sites) {
  return Chooser(point, times, options).choose(sites);
}

}  // namespace commfuse
