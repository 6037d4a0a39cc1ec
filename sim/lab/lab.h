// SPDX-License-Identifier: Apache-2.0
// The workloads that other simulators were timed on, as programs of ours: rings of equal messages, with tiles under
// them or not. Their costs are given, not priced, so that every simulator plays the same thing.
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
inline constexpr std::int32_t most_lab_ranks = 1 << 20;

enum class LabPattern : std::uint8_t {
  all_gather,  ///< P - 1 steps: each rank passes on to the next the chunk that came last
  all_reduce,  ///< 2 (P - 1) such steps; what adding up costs is left out
  fuse_ag,     ///< all_gather, and P tiles a rank in the order in which their chunks arrive
};

struct LabWorkload {
  std::string name;
  LabPattern pattern = LabPattern::all_gather;
  std::int32_t ranks = 2;
  Bytes chunk;               ///< of one message
  BytesPerSecond rate;       ///< of a link
  Duration latency{};        ///< of a message
  Duration shortest_tile{};  ///< of fuse_ag; tiles take whole steps from shortest to longest, each as likely
  Duration longest_tile{};
  Duration tile_step{};
  std::uint64_t seed = 1;  ///< of the tiles
};

/// Throws ConfigError with every mistake of the file.
LabWorkload load_lab(const std::string& path);

/// The unproved program: check_program() says whether it is right. Requires ranks >= 1.
Program lab_program(const LabWorkload& lab);

/// Requires lab_program(lab).
Costs lab_costs(const LabWorkload& lab, const Program& program);

struct LabOptions {
  SimulationOptions simulation;
  MonteCarloOptions monte_carlo;
  std::shared_ptr<const Faults> faults{};
};

struct LabRun {
  std::size_t messages = 0;  ///< over all ranks
  std::size_t tiles = 0;
  Duration makespan{};
  Evaluator evaluator = Evaluator::replay;  ///< who played it
  bool one_for_all = false;                 ///< rank 0 stood for all
  std::optional<Tails> tails{};             ///< under jitter
};

/// Proves the workload and plays it. Throws ConfigError on faults of ranks that are not there, where replay is to
/// play faults, on rates and sizes that leave the range of times, and on more ranks than there is memory for or than
/// can be played one by one. Aborts when the proof fails: these programs are right.
LabRun run_lab(const LabWorkload& lab, const LabOptions& options);

}  // namespace commfuse
