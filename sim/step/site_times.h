// SPDX-License-Identifier: Apache-2.0
// What a product with its collective takes under a strategy: the schedule is played by the evaluators, once a shape.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "model/strategies/scope.h"
#include "model/workload/training_plan.h"
#include "sim/point/predict.h"

namespace commfuse {

/// Strategies that may win at a site: with schedules for all of them, and no bounds.
std::vector<const Strategy*> strategies_for_steps();

struct Implementation;

/// A site of one micro-batch under sequence parallelism; or the attention block under Ulysses (Scope::ulysses).
struct SitePoint {
  const Transformer* model = nullptr;
  Scope scope = Scope::qkv;
  std::int32_t ranks = 1;
  std::int64_t tokens = 1;
  std::int64_t batch = 1;     ///< Sequences that these are of, where the scope has attention.
  DType dtype = DType::bf16;  ///< fp8: of the products alone; what is sent and added up has 16 bits.
  const Strategy* strategy = nullptr;
  AttentionWindow window{};  ///< Where the scope has attention.
  double weight_bits = 0.0;  ///< GemmSize::weight_bits.
  /// Whose kernels run the schedule; none: ideal ones. Outlives what is asked with it.
  const Implementation* implementation = nullptr;
};

/// Of the tensor ranks of a plan, one micro-batch. Requires that the shape outlives it.
SitePoint site_point(const TrainingPlan& plan, const Transformer& shape, Scope scope);

struct SiteTime {
  Duration time{};
  std::int64_t kernels = 0;  ///< That a rank's host issues.
  Duration compute{};        ///< Essential work, uncut and undisturbed.
  Duration ideal{};          ///< With free communication.
  const Strategy* strategy = nullptr;
  StrategyOptions options;  ///< Of the fastest schedule.
};

/// A schedule at a site, run many times under jitter.
struct SampledSite {
  SiteTime schedule;  ///< As if nothing strayed.
  SampledTimes times;
};

/// On one machine. Keeps what it has played: a shape that comes back costs a look-up.
class SiteTimes {
 public:
  enum class Counts : std::uint8_t {
    schedule,  ///< The whole makespan.
    compute,   ///< Compute alone, uncut or as the schedule cuts it, whichever takes less: no schedule is faster.
  };

  SiteTimes(StructureCache& structures, const Machine& machine, Counts counts = Counts::schedule);

  /// The fastest schedule of the strategy, on a chip that has run hot and with a host that issues in no time: a step
  /// counts issuing apart. Throws ConfigError where the strategy has no schedule for the site or for its tokens.
  SiteTime of(const SitePoint& point);

  /// The fastest of several strategies, the first on ties; those without a schedule for the site are passed over where
  /// others have one. `point.strategy` counts for nothing. Throws ConfigError as `of` where none has. Requires at least
  /// one.
  SiteTime fastest(SitePoint point, std::span<const Strategy* const> strategies);

  /// The very schedule that was the fastest elsewhere.
  SiteTime again(const SitePoint& point, const SiteTime& schedule);

  /// All schedules of the strategies that may be the fastest in the mean or in the p99, and those of serial, under the
  /// same draws, fastest first as if nothing strayed. Left out are schedules that take longer without jitter than
  /// another's p99 with it. Requires options.jitter, and serial among the strategies; `point.strategy` counts for
  /// nothing.
  std::vector<SampledSite> sampled(const SitePoint& point, std::span<const Strategy* const> strategies,
                                   const MonteCarloOptions& options);

  /// What a schedule of the site takes where ops take longer.
  Duration slowed(SitePoint point, const SiteTime& schedule, const Slowdown& slowdown);

  /// One schedule of the site, where one rank's kernels take so many times as long beside what strays. Requires
  /// options.jitter.
  SampledTimes sampled(SitePoint point, const SiteTime& schedule, const MonteCarloOptions& options, double slowdown);

  /// From now on `fastest` gives this schedule at the site, whatever the strategies.
  void prefer(SitePoint point, const SiteTime& schedule);

  /// Sites played so far, not looked up.
  [[nodiscard]] std::int64_t played() const { return static_cast<std::int64_t>(known_.size()); }
  void forget() {
    known_.clear();
    slowed_.clear();
  }

 private:
  /// Scope, ranks, tokens, batch, dtype, strategy, implementation, window and bits of weights; what of the model
  /// counts: hidden, ffn, heads, kv heads, head_dim, columns of QKV and of attention, gate of the MLP.
  using Key = std::tuple<Scope, std::int32_t, std::int64_t, std::int64_t, DType, const Strategy*, const Implementation*,
                         std::int64_t, bool, double, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t, std::int64_t, bool>;
  static Key key_of(const SitePoint& point);
  [[nodiscard]] Point point_at(const SitePoint& point) const;
  [[nodiscard]] SiteTime time_of(const Prediction& prediction) const;
  Predictor predictor_;
  Machine machine_;  ///< Hot, and its host issues in no time.
  Counts counts_;
  std::map<Key, SiteTime> known_;
  std::map<Key, SiteTime> preferred_;  ///< Without a strategy in the key.
  std::map<std::tuple<Key, StrategyOptions, Slowdown>, Duration> slowed_;
};

}  // namespace commfuse
