// SPDX-License-Identifier: Apache-2.0
// Settings to try the laws on: every machine, scope and strategy in turn, all else drawn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "tests/laws/draws.h"
#include "tests/laws/setting.h"

namespace commfuse::laws {

/// Of every shipped machine, what settings have to know.
struct MachineChoice {
  std::string name;
  int gpus = 1;
  int gpus_per_node = 1;
  std::vector<DType> dtypes;
};

/// What must all be seen together.
struct Place {
  std::size_t machine = 0;  ///< Of Axes::machines.
  std::string scope;
  std::string strategy;
};

struct Axes {
  std::vector<MachineChoice> machines;
  std::vector<std::string> models;
  std::vector<Place> places;  ///< Machine by machine; strategies that have a schedule for the scope.
};
/// From the config folder.
Axes shipped_axes();

/// Makes the setting of a number; `attempt` gives another one at the same place where one cannot be run. A pure
/// function.
struct Generator {
  std::string_view name;
  Setting (*make)(const Axes&, std::uint64_t seed, std::uint32_t index, std::uint32_t attempt);
};

/// Every place in turn, in an order that the seed decides; independent draws of common values.
extern const Generator independent_draws;

/// Held back: made in another way, so that what was mended with the other in view is tried by settings that nobody has
/// looked at. No violation is looked for or mended with it. A low-discrepancy sequence over all axes at once, with
/// values that are not the usual ones.
extern const Generator low_discrepancy;

}  // namespace commfuse::laws
