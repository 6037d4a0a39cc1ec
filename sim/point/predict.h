// SPDX-License-Identifier: Apache-2.0
// Predicts one point with one schedule: from a model on a machine to a breakdown of the time.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
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
#include "sim/point/kernel_memory.h"
#include "sim/point/recent.h"
#include "sim/point/structure.h"
#include "sim/replay/monte_carlo.h"
#include "sim/replay/replay.h"

namespace commfuse {

struct Point {
  Transformer model;
  Machine machine;
  std::string link_bandwidth = "x1";     ///< setting of the machine's links, already applied
  std::string network_bandwidth = "x1";  ///< setting of the machine's links between nodes, already applied
  Scope scope = Scope::mlp;
  std::int32_t ranks = 8;
  std::int64_t batch = 1;
  std::int64_t seq = 4096;
  DType dtype = DType::bf16;
  PriceOptions price;
  SimulationOptions simulation;
  std::string jitter = "none";                                    ///< name of the jitter
  std::array<bool, all_provenances.size()> jitter_provenances{};  ///< by provenance: true if the jitter depends on it
  MonteCarloOptions monte_carlo;
  std::string fault_file = "none";         ///< name of the faults
  std::shared_ptr<const Faults> faults{};  ///< null: no faults
  /// Copies of the machine, each with one parameter raised by its error; null: no uncertainty is requested.
  std::shared_ptr<const std::vector<RaisedMachine>> raised{};

  /// Returns whether rates change at run time, which only the engine can simulate.
  [[nodiscard]] bool needs_engine() const { return faults != nullptr || price.interference == Interference::dynamic; }
  [[nodiscard]] Evaluator chosen_evaluator() const {
    return needs_engine() || simulation.evaluator == Evaluator::engine ? Evaluator::engine : Evaluator::replay;
  }
  [[nodiscard]] Load load() const { return {batch, seq}; }
};

/// Throws ConfigError when the machine has too few GPUs or lacks the dtype, when the settings require replay for a run
/// that replay cannot simulate, and for impossible faults.
void require_machine(const Point& point);
/// Throws as require_machine does, and when the model lacks the layers of the scope or cannot be split over the ranks.
void require_possible(const Point& point);

struct Prediction : Outcome {
  const Strategy* strategy = nullptr;  // null: from a file
  StrategyOptions options;
  Analysis analysis;
  Bytes buffers;                            // memory of all buffers of one rank
  std::optional<Tails> tails{};             // under jitter only
  Evaluator evaluator = Evaluator::engine;  // evaluator that was used
  Sizes sizes;                              // sizes that were priced
  const Structure* structure = nullptr;     // lives as long as the cache, or the file's schedule
};

/// Returns whether a price of the program may depend on the raised parameter; false means that none does.
bool may_be_affected(const Program& program, const Point& point, const RaisedMachine& raised);

/// Returns the options with `constant` interference in place of `dynamic`.
PriceOptions with_fixed_prices(PriceOptions options);

/// Returns the costs of the ops on a machine with fixed rates: with `constant` interference in place of `dynamic`,
/// without faults. Requires `structure` and `sizes` to be those of the point.
Costs static_costs(const Point& point, const Machine& machine, const Structure& structure, const Sizes& sizes);

/// Times of many runs under jitter.
struct SampledTimes {
  Duration mean{};
  Duration p99{};
  double deviation = 0.0;  ///< standard deviation, seconds
};

/// Runs points on one thread, and keeps the evaluators' memory from point to point.
class Predictor {
 public:
  /// `for_each` runs the samples under jitter; null: one after another.
  explicit Predictor(StructureCache& structures, ForEachIndex for_each = nullptr)
      : structures_(structures), monte_carlo_(for_each) {}

  /// Keeps the times of kernels from point to point (kernel_memory.h) until the next call. Requires that all points
  /// with one number have identical accelerators, which each raised parameter changes in the same way. Without a
  /// number, as at first, all kernels are priced.
  void recall_kernels(std::optional<std::size_t> accelerator) { accelerator_ = accelerator; }

  /// Returns kinds_of(scope), computed once.
  const std::vector<SiteKind>& kinds(Scope scope);

  /// Throws ConfigError if the strategy refuses the options, if a dimension does not divide into the blocks of this
  /// schedule, and if the schedule is too large to generate or to prove. Requires `point` to pass require_possible().
  Prediction predict(const Point& point, const Strategy& strategy, const StrategyOptions& options);

  /// Returns the reason why predict() would throw for this schedule, without pricing the schedule; empty if predict()
  /// would not throw. Throws ConfigError itself if the schedule is too large. Requires `point` to pass
  /// require_possible().
  std::string refusal(const Point& point, const Strategy& strategy, const StrategyOptions& options);

  /// Returns the spans of all ops in a run without jitter. Requires `structure` and `sizes` to be those of the point.
  Timeline timeline(const Point& point, const Structure& structure, const Sizes& sizes);

  /// Adds the percentiles under jitter. Does nothing if the point has no jitter.
  void add_tails(const Point& point, Prediction& prediction);

  /// Returns the makespan of every run under the point's jitter, by sample. The kernels of rank 0 take `slowdown` times
  /// as long. Requires `point` to have a jitter.
  std::vector<Duration> makespans(const Point& point, const Prediction& prediction, double slowdown = 1.0);

  /// Returns the times under the point's jitter. The kernels of rank 0 take `slowdown` times as long. Requires `point`
  /// to have a jitter.
  SampledTimes sampled(const Point& point, const Prediction& prediction, double slowdown = 1.0);

  /// Returns the makespan at the point's static_costs(), with ops slowed equally on every rank.
  Duration slowed(const Point& point, const Strategy& strategy, const StrategyOptions& options,
                  const Slowdown& slowdown);

  /// Returns the uncertainty of the makespan: the effect of errors of parameters and fits, at prices that stay fixed.
  /// Returns an empty Uncertainty unless the point requests it.
  Uncertainty uncertainty(const Point& point, const Prediction& prediction);

  /// Returns the makespan at these prices. Requires `structure` to be that of the point.
  Duration static_makespan(const Point& point, const Structure& structure, const Costs& costs);

  /// Predicts a schedule from a file. Throws ConfigError as sizes_at does. Requires `schedule` to belong to `point`,
  /// and `point` to pass require_machine().
  Prediction predict(const Point& point, const HandWritten& schedule);

  /// Returns the fastest of the candidates that can run at the point, the first on ties. Throws the first candidate's
  /// ConfigError when none can run.
  Prediction predict_best(const Point& point, const Strategy& strategy, const std::vector<StrategyOptions>& candidates);

 private:
  /// The structures of generated schedules are never dropped, so their addresses identify them.
  enum class Schedule : std::uint8_t { generated, from_file };
  /// The costs of the ops at a point, with the engine's options.
  struct Priced {
    Costs costs;
    std::optional<Fluid> fluid{};
    EngineOptions options{};  ///< points to `fluid`
  };
  /// The costs from which a point's uncertainty follows; their memory is reused.
  struct Doubted {
    KernelTimes times;                      ///< at the point
    Costs costs;                            ///< at the point
    std::vector<std::size_t> raised;        ///< raised parameters that may affect kernels of the program
    std::vector<KernelTimes> raised_times;  ///< by index in `raised`
    KernelTimes transfers;                  ///< on a raised machine with the same kernels
    std::vector<Costs> varied;              ///< one per doubt
    std::size_t used = 0;                   ///< number of elements of `varied` that this point uses

    Costs& next() {
      if (used == varied.size()) {
        varied.emplace_back();
      }
      return varied[used];
    }
  };
  /// Returns static_makespan() at each of several costs. Costs with the same issue times as the nominal costs are
  /// replayed together. Changes the order of `varied`.
  std::vector<Duration> static_makespans(const Point& point, const Structure& structure, const Costs& nominal,
                                         std::span<Costs> varied);
  void price_into(Priced& priced, const Point& point, const Structure& structure, const Sizes& sizes);
  /// Returns the structure of a generated schedule. Throws ConfigError if the strategy refuses the options.
  const Structure& structure_at(const Point& point, const Strategy& strategy, const StrategyOptions& options);
  /// Sets the prices that price_into() sets, but recalls and keeps the times of kernels.
  void price_recalled_into(Priced& priced, const Point& point, const KernelInputs& inputs);
  /// Prices doubted_.costs, and the kernels from which they follow.
  void price_doubted(const Point& point, const Prediction& prediction);
  /// Prices on machines with raised parameters, and adds the parameters that change the costs to `doubts`.
  void price_raised(const Point& point, const Prediction& prediction, std::vector<DoubtOf>& doubts);
  /// Prices doubted_.next() on a raised machine. Returns false if these costs, or the times of all kernels that the
  /// parameter may affect, equal those in doubted_.
  bool raises_costs(const Point& point, const Prediction& prediction, const RaisedMachine& raised, KernelTimes& times);
  /// Returns the inputs to the times of kernels on the point's machine; nothing if times are not kept.
  std::optional<KernelInputs> kernel_inputs(const Point& point, Schedule schedule, const Structure& structure,
                                            const Sizes& sizes);
  std::optional<KernelInputs> kernel_inputs(const Point& point, const Prediction& prediction) {
    const Schedule schedule = prediction.strategy != nullptr ? Schedule::generated : Schedule::from_file;
    return kernel_inputs(point, schedule, *prediction.structure, prediction.sizes);
  }
  std::size_t number_of(std::size_t accelerator, PriceOptions options);
  /// Makes the engine simulate only the first ranks if they represent all ranks.
  void fold(Priced& priced, const Point& point, const Structure& structure);
  /// Drops all results for schedules on wires: a new schedule may have the address of a deleted one.
  void forget_schedules();
  Wiring whole_wiring(const Point& point, const Program& program);
  std::shared_ptr<const Wiring> wiring(const Point& point, const Structure& structure);
  const CutBound& cut_bound(const Point& point, const Structure& structure);
  /// Aborts if the run, or the run without compute, is faster than the wires allow. Under dynamic interference, first
  /// raises prediction.link to the bound of the wires.
  void hold_to_wires(const Point& point, const Structure& structure, const Sizes& sizes, Prediction& prediction);
  Prediction simulate(const Point& point, Schedule schedule, const Structure& structure, Sizes sizes, Flops flops);
  StructureCache& structures_;
  Recent<StructureKey, const Structure*> recent_structures_;
  std::map<Scope, std::vector<SiteKind>> kinds_;
  Replay replay_;
  Engine engine_;
  MonteCarlo monte_carlo_;
  Doubted doubted_;
  Priced simulated_;     // belongs to the last point; its memory is reused
  KernelTimes kernels_;  // belong to the last point; their memory is reused
  KernelMemory kernel_memory_;
  std::optional<std::size_t> accelerator_;
  std::vector<std::pair<std::size_t, PriceOptions>> priced_as_;  // accelerator and options, by KernelInputs::priced_as
  std::size_t last_priced_as_ = 0;
  std::vector<std::vector<std::size_t>> raised_lists_;  // lists of raised parameters, by KernelInputs::raised - 1
  /// Key of results for a schedule on certain wires. Holds the topology, so that no other topology can get its address.
  using OnWires = std::pair<const Structure*, std::shared_ptr<const Topology>>;
  template <class T>
  struct Kept {
    std::string digest;  ///< digest of the schedule to which the value belongs
    T value;
  };
  std::optional<KnownRoutes> routes_;  ///< routes on the wires that were requested last
  std::map<OnWires, Kept<std::shared_ptr<const Wiring>>> wirings_;
  std::map<OnWires, Kept<CutBound>> cut_bounds_;
  /// Entries of cut_bounds_, which hold the topologies.
  Recent<std::pair<const Structure*, const Topology*>, const Kept<CutBound>*> recent_cut_bounds_;
  /// For each wiring and number of first ranks: the wiring of these ranks; null if they do not represent all ranks.
  std::map<std::pair<const Wiring*, Rank>, std::shared_ptr<const Wiring>> folded_wirings_;
  Recorder recorder_;
};

}  // namespace commfuse
