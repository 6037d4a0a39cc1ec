// SPDX-License-Identifier: Apache-2.0
// Tries laws on settings of a generator, says what was covered, and makes violated settings small.
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

/// Settings of a generator: those of a seed, from `first` on.
struct Trial {
  const Generator* generator = nullptr;
  std::uint64_t seed = 1;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

struct Violation {
  const Law* law = nullptr;
  Setting before;
  Setting after;        ///< What the law compares it with; the same where it looks at one result.
  DrawKey key;          ///< Of what the law draws.
  double factor = 1.0;  ///< How many times what the law allows.
};

struct LawTally {
  const Law* law = nullptr;
  std::size_t tried = 0;     ///< Settings of which the law says something.
  std::size_t violated = 0;  ///< Of these, by a cause that is not known.
  std::size_t known = 0;     ///< By a known one.
};

struct Coverage {
  std::size_t settings = 0;
  std::size_t given_up = 0;  ///< Numbers whose settings cannot be run.
  std::set<std::string> machines, models, scopes, strategies;
  std::set<std::string> places;  ///< Machine, scope and strategy together.
};

struct Report {
  Coverage coverage;
  std::vector<LawTally> tallies;      ///< By law.
  std::vector<Violation> violations;  ///< Minimised, by causes that are not known.
};

/// Tries all laws.
Report try_laws(const Trial& trial, const Axes& axes, const std::vector<KnownViolation>& known, Simulator& simulator);

/// The law at a setting; nothing where it holds or says nothing.
std::optional<Violation> violation_of(const Law& law, const Setting& setting, const DrawKey& key, Simulator& simulator);

/// As few choices as still violate the law.
Violation minimised(Violation violation, Simulator& simulator);

/// What was covered, a line a law, then the violations with the commands that show them.
std::string to_text(const Report& report, const Axes& axes);

}  // namespace commfuse::laws
