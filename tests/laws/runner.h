// SPDX-License-Identifier: Apache-2.0
// Tries laws on settings of a generator, reports the coverage, and minimizes violated settings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/laws/generator.h"
#include "tests/laws/known_violations.h"
#include "tests/laws/law.h"

namespace commfuse::laws {

/// Settings that a generator draws from a seed: `count` of them, from number `first` on.
struct Trial {
  const Generator* generator = nullptr;
  std::uint64_t seed = 1;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

struct Violation {
  const Law* law = nullptr;
  Setting before;
  Setting after;  ///< The setting that the law compares with `before`; equal to it if the law checks a single result.
  DrawKey key;    ///< Key of the law's draws.
  double factor = 1.0;  ///< Result in units of what the law allows.
};

struct LawTally {
  const Law* law = nullptr;
  std::size_t tried = 0;     ///< Settings to which the law applies.
  std::size_t violated = 0;  ///< Violations by an unknown cause.
  std::size_t known = 0;     ///< Violations by a known cause.
};

struct Coverage {
  std::size_t settings = 0;
  std::size_t given_up = 0;  ///< Numbers for which no attempt gave a setting that can be run.
  std::set<std::string> machines, models, scopes, strategies;
  std::set<std::string> places;  ///< Machine, scope and strategy together.
};

struct Report {
  Coverage coverage;
  std::vector<LawTally> tallies;      ///< By law.
  std::vector<Violation> violations;  ///< Without a known cause; minimized and distinct, from at most 25 per law.
};

/// Tries all laws on the settings of a trial.
Report try_laws(const Trial& trial, const Axes& axes, const std::vector<KnownViolation>& known, Simulator& simulator);

/// Tries a law at a setting and returns its violation; nothing if the law holds or does not apply.
std::optional<Violation> violation_of(const Law& law, const Setting& setting, const DrawKey& key, Simulator& simulator);

/// Removes every choice, except the strategy, without which the law is still violated.
Violation minimized(Violation violation, Simulator& simulator);

/// Returns the coverage, then a line for each law, then the violations with the commands that show them.
std::string to_text(const Report& report, const Axes& axes);

}  // namespace commfuse::laws
