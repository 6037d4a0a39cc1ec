// SPDX-License-Identifier: Apache-2.0
// Turns settings into the simulator's inputs: a point and the schedules to try on it.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/config/choices.h"
#include "model/config/implementation.h"
#include "model/config/settings.h"
#include "model/record/result.h"
#include "sim/point/predict.h"

namespace commfuse {

struct LoadedJitter {
  std::shared_ptr<const JitterTables> tables;              ///< null: no jitter
  std::array<bool, all_provenances.size()> provenances{};  ///< by provenance: true if the jitter depends on it
};
/// Loads a jitter. Throws ConfigError with the mistakes in the file.
LoadedJitter load_jitter_tables(const std::string& name);
MonteCarloOptions monte_carlo_of(const RunChoices& run, std::shared_ptr<const JitterTables> jitter);

/// The models, machines, jitters, faults, implementations and schedule files of a grid. Each file is read once, however
/// many points name it.
class Library {
 public:
  /// Loads everything that the settings of a point name. Throws ConfigError with the mistakes in a file, like the other
  /// members that load.
  void load(const Settings& settings);
  void load_model(const std::string& name);
  /// Loads the machine with the link rates of the settings.
  void load_machine(const Settings& settings);
  void load_jitter(const std::string& name);
  void load_faults(const std::string& name);
  /// Loads the implementations in the setting `as`.
  void load_implementations(const std::string& names);

  /// Adds schedules from files, which run in addition to the generated schedules at the points to which they belong.
  void add(std::vector<HandWritten> schedules) { schedules_ = std::move(schedules); }

  [[nodiscard]] const Transformer& model(const std::string& name) const { return models_.at(name); }
  [[nodiscard]] const Machine& machine(const MachineChoice& choice) const { return machines_.at(choice).machine; }
  /// Returns copies of the machine, each with one parameter raised by its error, except the parameters that affect only
  /// decoding. Null unless the machine was loaded with `uncertainty` on.
  [[nodiscard]] std::shared_ptr<const std::vector<RaisedMachine>> raised(const MachineChoice& choice) const {
    return machines_.at(choice).raised;
  }
  /// Returns copies of the machine for all parameters, including those that affect only decoding; null unless the
  /// machine was loaded for a decoding step with `uncertainty` on.
  [[nodiscard]] std::shared_ptr<const std::vector<RaisedMachine>> raised_for_decoding(
      const MachineChoice& choice) const {
    return machines_.at(choice).raised_for_decoding;
  }
  /// Returns the number of the machine's accelerator: machines with equal numbers differ only in their links, because
  /// they come from one hardware file and with_chosen_links() changes only links.
  [[nodiscard]] std::size_t accelerator(const MachineChoice& choice) const { return machines_.at(choice).accelerator; }
  [[nodiscard]] const LoadedJitter& jitter(const std::string& name) const { return jitters_.at(name); }
  /// Returns null if there are no faults.
  [[nodiscard]] std::shared_ptr<const Faults> faults(const std::string& name) const { return faults_.at(name); }
  [[nodiscard]] std::span<const std::shared_ptr<const Implementation>> implementations(const std::string& names) const {
    return implementations_.at(names);
  }
  [[nodiscard]] std::span<const HandWritten> schedules() const { return schedules_; }

 private:
  std::map<std::string, Transformer> models_;
  struct LoadedMachine {
    Machine machine;
    std::shared_ptr<const std::vector<RaisedMachine>> raised{};  // without the parameters that affect only decoding
    std::shared_ptr<const std::vector<RaisedMachine>> raised_for_decoding{};
    std::size_t accelerator = 0;
  };
  std::vector<std::pair<std::string, Machine>> hardware_;  // by number of the accelerator: name, machine of the file
  std::map<MachineChoice, LoadedMachine> machines_;
  std::map<std::string, LoadedJitter> jitters_;
  std::map<std::string, std::shared_ptr<const Faults>> faults_;
  std::map<std::string, std::vector<std::shared_ptr<const Implementation>>> implementations_;
  std::vector<HandWritten> schedules_;
};

/// Returns the rule that the settings verdict.difference and verdict.probability define.
VerdictRule verdict_rule_of(const Settings& settings);

/// Returns whether the scope is a training step, a prefill or a decoding step. sim/step predicts these scopes; a Point
/// cannot describe them.
bool is_whole_model(const Settings& settings);

/// Returns the first setting that differs from its default and that this work does not use; null if there is none.
/// Prefers settings that the user chose to settings that a framework chose.
const Field* unused_setting(const Settings& settings, Use work);

/// Throws ConfigError for a setting that differs from its default and that the scope does not use. The message names
/// the origin of the setting and the scopes that use it.
void require_used_by_scope(const Settings& settings);

/// Returns the experts of a scope's GEMM; none unless the model is a bare mixture (bare_mlp.h).
ExpertSplit experts_of(Scope scope, const Transformer& model);

/// Throws ConfigError for a whole model and for a setting that the scope does not use. Requires that the library has
/// loaded everything that the settings name. Does not check whether the point is possible.
Point point_of(const Settings& settings, const Library& library);

/// Throws as require_machine does, and if there are more tokens than the arithmetic supports.
void require_simulatable(const Point& point);
/// Throws as require_simulatable and require_possible do.
void require_runnable(const Point& point);

struct Candidates {
  const Strategy* strategy = nullptr;
  std::vector<StrategyOptions> options;
  std::shared_ptr<const Implementation> implementation{};  ///< null: the ideal schedule
};

/// Returns one entry per result row: with variants "best" one per strategy, with "all" one per schedule. Throws
/// ConfigError for a whole model, a setting that the scope does not use, a named strategy without a schedule for the
/// scope, a fixed parameter that belongs to none of the strategies, and a cut of attention with nested rings.
std::vector<Candidates> candidates_of(const Settings& settings);

using Implementations = std::span<const std::shared_ptr<const Implementation>>;
/// Returns the implementations of the setting `as`. Requires that the library has loaded them.
Implementations implementations_named(const Settings& settings, const Library& library);
/// Finds the implementation of a row; null for an ideal schedule, and if no implementation has the name.
const Implementation* implementation_of(const ResultRow& row, Implementations implementations);

/// Returns one entry per implementation in the setting `as` that covers the scope; for `all`, without stand-ins.
/// Requires that the library has loaded them. Throws ConfigError if a named implementation does not cover the scope.
std::vector<Candidates> implementations_of(const Settings& settings, const Library& library);

/// Returns the schedules that the implementation may use: all that agree with the options in its file.
std::vector<StrategyOptions> schedules_of(const Implementation& implementation, Scope scope, std::int32_t ranks,
                                          DType dtype);

/// Returns the reason why the implementation cannot run at the point, with the remedy; empty when it can.
std::string refusal_of(const Implementation& implementation, const Point& point);

/// Returns the point at the implementation's prices, or at `costs`. Both must outlive the point. Collectives of NCCL
/// hold SMs only while they run, so dynamic interference replaces constant interference for implementations that use
/// NCCL; the engine then replaces replay, which cannot simulate dynamic interference.
Point priced_as(const Point& point, const Implementation& implementation);
Point priced_as(const Point& point, const Implementation& implementation, const ImplementationCosts& costs);

/// Returns whether the user chose a strategy or a parameter of one.
bool names_strategies(const Settings& settings);
/// Returns one schedule per strategy; options that are not fixed keep their defaults. Throws ConfigError as
/// candidates_of does, and if a strategy has no such schedule.
std::vector<Candidates> plain_candidates_of(const Settings& settings);

}  // namespace commfuse
