// SPDX-License-Identifier: Apache-2.0
// One point, one schedule: from a model on a machine to where the time goes.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/analysis/breakdown.h"
#include "model/analysis/uncertainty.h"
#include "model/config/choices.h"
#include "model/cost/cut_bound.h"
#include "model/cost/price.h"
#include "model/hardware/machine.h"
#include "model/hardware/raised.h"
#include "model/record/outcome.h"
#include "model/workload/transformer.h"
#include "sim/engine/engine.h"
#include "sim/point/hand_written.h"
#include "sim/point/structure.h"
#include "sim/replay/monte_carlo.h"
#include "sim/replay/replay.h"

namespace commfuse {

struct Point {
  Transformer model;
  Machine machine;
  std::string link_bandwidth = "x1";     ///< what was asked of its links: they are so already
  std::string network_bandwidth = "x1";  ///< the same between nodes
  Scope scope = Scope::mlp;
  std::int32_t ranks = 8;
  std::int64_t batch = 1;
  std::int64_t seq = 4096;
  DType dtype = DType::bf16;
  PriceOptions price;
  SimulationOptions simulation;
  std::string jitter = "none";                                 ///< its name
  std::array<bool, all_provenances.size()> jitter_leans_on{};  ///< kinds of its parameters
  MonteCarloOptions monte_carlo;
  std::string fault_file = "none";         ///< its name
  std::shared_ptr<const Faults> faults{};  ///< null: nothing goes wrong
  /// The machine, one parameter higher by its error each time; null: nobody asks how sure a time is.
  std::shared_ptr<const std::vector<RaisedMachine>> raised{};

  /// Rates change at run time, which only the engine can play.
  [[nodiscard]] bool needs_engine() const { return faults != nullptr || price.interference == Interference::dynamic; }
  [[nodiscard]] Evaluator player() const {
    return needs_engine() || simulation.evaluator == Evaluator::engine ? Evaluator::engine : Evaluator::replay;
  }
  [[nodiscard]] Load load() const { return {batch, seq}; }
};

/// Throws ConfigError when the machine has too few GPUs or no such dtype, when replay is asked for what it cannot play,
/// and on faults of ranks that are not there.
void require_machine(const Point& point);
/// As require_machine, and when the model cannot be split over the ranks.
void require_possible(const Point& point);

struct Prediction : Outcome {
  const Strategy* strategy = nullptr;  // null: of a file
  StrategyOptions options;
  Analysis analysis;
  Bytes buffers;                            // memory of all buffers of one rank
  std::optional<Tails> tails{};             // under jitter
  Evaluator evaluator = Evaluator::engine;  // who played it
  Sizes sizes;                              // that it was priced at
  const Structure* structure = nullptr;     // lives as long as the cache, or the file's schedule
};

/// What the ops cost on a machine when rates stay fixed: with `constant` interference in place of `dynamic`, without
/// faults. Requires a structure and sizes of the point.
Costs static_costs(const Point& point, const Machine& machine, const Structure& structure, const Sizes& sizes);

/// Of many runs under jitter.
struct SampledTimes {
  Duration mean{};
  Duration p99{};
  double deviation = 0.0;  ///< Standard, seconds.
};

/// Runs points on one thread; keeps the evaluators' memory between them.
class Predictor {
 public:
  explicit Predictor(StructureCache& structures) : structures_(structures) {}

  /// kinds_of(scope), worked out once.
  const std::vector<SiteKind>& kinds(Scope scope);

  /// Throws ConfigError when the tokens do not divide into the blocks of this schedule. Requires a possible point.
  Prediction predict(const Point& point, const Strategy& strategy, const StrategyOptions& options);

  /// Everything that happens in a run without jitter. Requires a structure and sizes of the point.
  Timeline timeline(const Point& point, const Structure& structure, const Sizes& sizes);

  /// Adds what jitter does to it: nothing where the point has none.
  void add_tails(const Point& point, Prediction& prediction);

  /// Its makespan in every run under the point's jitter, by sample. Requires a point that has a jitter.
  std::vector<Duration> makespans(const Point& point, const Prediction& prediction, double slowdown = 1.0);

  /// Its makespan under the point's jitter, where kernels of one rank take `slowdown` times as long beside. Requires a
  /// point that has a jitter.
  SampledTimes sampled(const Point& point, const Prediction& prediction, double slowdown = 1.0);

  /// Its makespan at such prices where ops take longer, the same on every rank.
  Duration slowed(const Point& point, const Strategy& strategy, const StrategyOptions& options,
                  const Slowdown& slowdown);

  /// How sure the makespan is: what errors of parameters and of fits do to it, at prices that stay fixed. Nothing where
  /// nobody asks.
  Uncertainty uncertainty(const Point& point, const Prediction& prediction);

  /// Makespan at such prices. Requires a structure of the point.
  Duration static_makespan(const Point& point, const Structure& structure, const Costs& costs);

  /// Of a schedule from a file that belongs to the point. Throws ConfigError as sizes_at. Requires a machine that the
  /// point fits.
  Prediction predict(const Point& point, const HandWritten& schedule);

  /// The fastest of the candidates that divide the tokens, the first on ties. Throws ConfigError when none does.
  Prediction predict_best(const Point& point, const Strategy& strategy, const std::vector<StrategyOptions>& candidates);

 private:
  /// What the ops cost at a point, and what the engine needs beside that.
  struct Priced {
    Costs costs;
    std::optional<Fluid> fluid{};
    EngineOptions options{};  ///< points to `fluid`
  };
  /// static_makespan() at each of several costs; those that are issued as the nominal ones are replayed together.
  /// Consumes `others`.
  std::vector<Duration> static_makespans(const Point& point, const Structure& structure, const Costs& nominal,
                                         std::vector<Costs>& others);
  void price_into(Priced& priced, const Point& point, const Structure& structure, const Sizes& sizes);
  /// Simulates the first ranks alone where they stand for all.
  void fold(Priced& priced, const Point& point, const Structure& structure);
  /// Drops all that is kept of schedules: one has the address of another that is gone.
  void forget_schedules();
  Wiring whole_wiring(const Point& point, const Program& program);
  std::shared_ptr<const Wiring> wiring(const Point& point, const Structure& structure);
  const CutBound& cut_bound(const Point& point, const Structure& structure);
  /// Aborts where the run, or one without compute, is faster than the wires allow.
  void hold_to_wires(const Point& point, const Structure& structure, const Sizes& sizes, Prediction& prediction);
  Prediction play(const Point& point, const Structure& structure, const Sizes& sizes, Flops flops);
  StructureCache& structures_;
  std::map<Scope, std::vector<SiteKind>> kinds_;
  Replay replay_;
  Engine engine_;
  MonteCarlo monte_carlo_;
  /// What belongs to a schedule on such wires. Holds the topology, so that no other gets its address.
  using OnWires = std::pair<const Structure*, std::shared_ptr<const Topology>>;
  template <class T>
  struct Kept {
    std::string digest;  ///< Of the schedule that it belongs to.
    T value;
  };
  std::optional<KnownRoutes> routes_;  ///< Of the wires that were asked for last.
  std::map<OnWires, Kept<std::shared_ptr<const Wiring>>> wirings_;
  std::map<OnWires, Kept<CutBound>> cut_bounds_;
  const std::pair<const OnWires, Kept<CutBound>>* last_cut_bound_ = nullptr;  ///< Points in a row share schedules.
  /// By wiring and the number of the first ranks; null: they do not stand for all.
  std::map<std::pair<const Wiring*, Rank>, std::shared_ptr<const Wiring>> folded_wirings_;
  Recorder recorder_;
};

}  // namespace commfuse
