// SPDX-License-Identifier: Apache-2.0
// Everything that is computed once per schedule and used at every point: proof, order, plan, digest.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "model/cost/draw_keys.h"
#include "model/cost/price.h"
#include "model/cost/price_plan.h"
#include "model/program/order.h"
#include "model/strategies/scope.h"
#include "sim/engine/plan.h"
#include "sim/replay/tape.h"

namespace commfuse {

struct Structure {
  Plan plan;
  Tape tape;
  std::vector<DrawKey> draw_keys;
  std::vector<Meetings> meetings;
  PricePlan prices;
  std::string digest;

  [[nodiscard]] const Program& program() const { return *plan.lowered.program; }
  [[nodiscard]] PricedProgram priced() const { return {program(), meetings, prices}; }
};

/// Proves, lowers, orders and digests a program. Aborts when the proof fails: generators make only correct programs.
/// Throws ConfigError if there is too much to prove.
Structure structure_of(Program program);

/// The inputs that determine a structure.
struct StructureKey {
  Scope scope = Scope::mlp;
  bool gated_mlp = false;
  std::int32_t ranks = 1;
  const Strategy* strategy = nullptr;
  StrategyOptions options;
  friend bool operator==(const StructureKey&, const StructureKey&) = default;
};

/// Structures by key, created on first use, shared by threads and never dropped.
class StructureCache {
 public:
  /// Throws as generate() and structure_of() do.
  const Structure& get(const StructureKey& key);

 private:
  using Place = std::tuple<Scope, bool, std::int32_t, std::string_view, StrategyOptions>;
  std::mutex mutex_;
  std::map<Place, std::unique_ptr<const Structure>> structures_;
};

}  // namespace commfuse
