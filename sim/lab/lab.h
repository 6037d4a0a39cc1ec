// SPDX-License-Identifier: Apache-2.0
// The workloads on which other simulators were timed, written as programs: rings of equal messages, with or without
// compute tiles that overlap them. Their costs are given, not priced, so that all simulators run the same work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/config/choices.h"
#include "model/cost/costs.h"
#include "model/program/program.h"
#include "model/units.h"
#include "sim/replay/monte_carlo.h"

namespace commfuse {

inline constexpr std::string_view lab_schema = "commfuse.lab/1";
inline constexpr std::int32_t max_lab_ranks = 1 << 20;

enum class LabPattern : std::uint8_t {
  all_gather,  ///< P - 1 steps on P ranks: each rank forwards the chunk that it received last to the next rank
  all_reduce,  ///< 2 (P - 1) such steps; additions cost nothing
  fuse_ag,     ///< all_gather, plus P tiles per rank in the order in which their chunks arrive
};

struct LabWorkload {
  std::string name;
  LabPattern pattern = LabPattern::all_gather;
  std::int32_t ranks = 2;
  Bytes chunk;               ///< per message
  BytesPerSecond rate;       ///< per link
  Duration latency{};        ///< per message
  Duration shortest_tile{};  ///< fuse_ag only; lengths grow by tile_step up to longest_tile, all equally likely
  Duration longest_tile{};
  Duration tile_step{};    ///< gives at most 2^32 lengths
  std::uint64_t seed = 1;  ///< for random tile lengths
};

/// Reads a lab file. Throws ConfigError with every mistake in the file.
LabWorkload load_lab(const std::string& path);

/// Returns an unproved program; check_program() proves it. Requires lab.ranks >= 1.
Program lab_program(const LabWorkload& lab);

/// Returns the costs of `program`, which must be lab_program(lab).
Costs lab_costs(const LabWorkload& lab, const Program& program);

struct LabOptions {
  SimulationOptions simulation;
  MonteCarloOptions monte_carlo;
  std::shared_ptr<const Faults> faults{};
  ForEachIndex for_each = nullptr;  ///< runs jitter samples in parallel; null: one after another, with the same result
};

struct LabRun {
  std::size_t messages = 0;  ///< over all ranks
  std::size_t tiles = 0;
  Duration makespan{};
  Evaluator evaluator = Evaluator::replay;  ///< the evaluator used
  bool simulated_one_rank = false;          ///< only rank 0 was simulated, because all ranks behave identically
  std::optional<Tails> tails{};             ///< with jitter only
};

/// Proves and simulates the workload. Throws ConfigError for faults of unknown ranks, for faults with replay, for rates
/// and sizes whose times are out of range, and for more ranks than fit in memory or can be simulated one by one. Aborts
/// if the proof fails, because every lab program is correct by construction.
LabRun run_lab(const LabWorkload& lab, const LabOptions& options);

}  // namespace commfuse
