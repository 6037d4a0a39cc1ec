// SPDX-License-Identifier: Apache-2.0
// Generates the settings on which the laws are tried.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "tests/laws/draws.h"
#include "tests/laws/setting.h"

namespace commfuse::laws {

/// Properties of a shipped machine that settings need.
struct MachineChoice {
  std::string name;
  int gpus = 1;
  int gpus_per_node = 1;
  std::vector<DType> dtypes;
};

/// A combination of machine, scope and strategy that must be covered.
struct Place {
  std::size_t machine = 0;  ///< Index in Axes::machines.
  std::string scope;
  std::string strategy;
};

struct Axes {
  std::vector<MachineChoice> machines;
  std::vector<std::string> models;
  std::vector<Place> places;  ///< By machine; only strategies that have a schedule for the scope.
};
/// Reads the machines and the names of the models from the config folder.
Axes shipped_axes();

/// A pure function that makes the setting with number `index`. If that setting cannot be run, another `attempt` gives a
/// different one; independent_draws keeps the place of the setting.
struct Generator {
  std::string_view name;
  Setting (*make)(const Axes&, std::uint64_t seed, std::uint32_t index, std::uint32_t attempt);
};

/// Visits every place in turn, in an order that the seed determines, with independent draws from common values.
extern const Generator independent_draws;

/// The held-out generator: it works differently, so that corrections made with the other generator are tried on
/// new settings. No violation is searched for or fixed with it. It is a low-discrepancy sequence over all axes
/// together, with unusual values.
extern const Generator low_discrepancy;

}  // namespace commfuse::laws
