// SPDX-License-Identifier: Apache-2.0
// The time of a GEMM with its collective under a strategy. A Predictor simulates the schedule once per shape.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "model/strategies/scope.h"
#include "model/workload/training_plan.h"
#include "sim/point/predict.h"

namespace commfuse {

/// Returns the strategies that compete at a site when the user names none: all strategies, except bounds, that have
/// schedules for all sites of a step under any plan, Ulysses included.
std::vector<const Strategy*> strategies_for_steps();

struct Implementation;

/// A site of one micro-batch under tensor parallelism, or the attention block under Ulysses (Scope::ulysses).
struct SitePoint {
  const Transformer* model = nullptr;
  Scope scope = Scope::qkv;
  std::int32_t ranks = 1;
  std::int64_t tokens = 1;
  std::int64_t batch = 1;     ///< Number of sequences in the tokens, where the scope has attention.
  DType dtype = DType::bf16;  ///< fp8: only for the GEMMs; data that is sent or added uses 16 bits.
  const Strategy* strategy = nullptr;
  AttentionWindow window{};  ///< Used if the scope has attention.
  double weight_bits = 0.0;  ///< GemmSize::weight_bits.
  /// Implementation whose kernels run the schedule; null for ideal kernels. Must outlive every call that uses it.
  const Implementation* implementation = nullptr;
};

/// Returns the site of a plan's tensor ranks, for one micro-batch. `shape` must outlive the result.
SitePoint site_point(const TrainingPlan& plan, const Transformer& shape, Scope scope);

/// Returns the attention block of ranks that share the heads of a sequence, for one micro-batch of whole sequences.
/// `shape` must outlive the result.
SitePoint ulysses_point(const TrainingPlan& plan, const Transformer& shape);

struct SiteTime {
  Duration time{};
  std::int64_t kernels = 0;  ///< Number of kernels that a rank's host issues.
  Duration compute{};        ///< Time of the essential work, unsplit and undisturbed.
  Duration ideal{};          ///< Time with free communication.
  const Strategy* strategy = nullptr;
  StrategyOptions options;  ///< Options of the fastest schedule.
};

/// A schedule at a site, simulated many times under jitter.
struct SampledSite {
  SiteTime schedule;  ///< The schedule, with its time without jitter.
  SampledTimes times;
};

/// Times of sites on one machine. Keeps what it has simulated: a repeated shape costs a look-up.
class SiteTimes {
 public:
  enum class Counts : std::uint8_t {
    schedule,  ///< the whole makespan
    compute,   ///< only compute, unsplit or as the schedule splits it, whichever takes less: no schedule is faster
  };

  SiteTimes(StructureCache& structures, const Machine& machine, Counts counts = Counts::schedule);

  /// Returns the fastest schedule of the strategy, on a hot chip and with a host that takes no time to issue, because a
  /// step counts issuing separately. Throws ConfigError where the strategy has no schedule for the site or for its
  /// tokens.
  SiteTime of(const SitePoint& point);

  /// Returns whether of() returns a schedule instead of throwing, without simulating one.
  [[nodiscard]] bool has_schedule(const SitePoint& point);

  /// Returns the fastest of several strategies, the first on ties. Skips strategies without a schedule for the site.
  /// `point.strategy` is ignored. Throws ConfigError as `of` does where no strategy has a schedule. Requires at least
  /// one strategy.
  SiteTime fastest(SitePoint point, std::span<const Strategy* const> strategies);

  /// Returns the time of exactly this schedule, for example one that is the fastest on another machine.
  SiteTime again(SitePoint point, const SiteTime& schedule);

  /// Returns the schedules that may have the smallest mean or p99, and all schedules of serial, sampled under common
  /// draws and sorted by their time without jitter. Omits schedules that take longer without jitter than another
  /// schedule's p99 with jitter. Requires options.jitter, and serial among the strategies; `point.strategy` is ignored.
  std::vector<SampledSite> sampled(const SitePoint& point, std::span<const Strategy* const> strategies,
                                   const MonteCarloOptions& options);

  /// Returns the time of a schedule of the site with slower ops.
  Duration slowed(SitePoint point, const SiteTime& schedule, const Slowdown& slowdown);

  /// Returns the times of one schedule of the site, where one rank's kernels also take `slowdown` times as long.
  /// Requires options.jitter.
  SampledTimes sampled(SitePoint point, const SiteTime& schedule, const MonteCarloOptions& options, double slowdown);

  /// Makes later calls of `fastest` return this schedule at the site, whatever the strategies.
  void prefer(SitePoint point, const SiteTime& schedule);

  /// Returns the number of sites that of() has simulated since the last forget(), without look-ups.
  [[nodiscard]] std::int64_t simulated() const { return static_cast<std::int64_t>(known_.size()); }
  void forget() {
    known_.clear();
    again_.clear();
    slowed_.clear();
  }

 private:
  /// Scope, ranks, tokens, batch, dtype, strategy, implementation, window and bits of weights; and the part of the
  /// model that matters: hidden, ffn, heads, kv heads, head_dim, columns of QKV and of attention, gate of the MLP.
  using Key = std::tuple<Scope, std::int32_t, std::int64_t, std::int64_t, DType, const Strategy*, const Implementation*,
                         std::int64_t, bool, double, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t, std::int64_t, bool>;
  static Key key_of(const SitePoint& point);
  [[nodiscard]] Point point_at(const SitePoint& point) const;
  [[nodiscard]] SiteTime time_of(const Prediction& prediction) const;
  Predictor predictor_;
  Machine machine_;  ///< at sustained power, with a host that takes no time to issue
  Counts counts_;
  std::map<Key, SiteTime> known_;
  std::map<std::pair<Key, StrategyOptions>, SiteTime> again_;  ///< Results of again(), by site and schedule.
  std::map<Key, SiteTime> preferred_;                          ///< Without a strategy in the key.
  std::map<std::tuple<Key, StrategyOptions, Slowdown>, Duration> slowed_;
};

}  // namespace commfuse
