// SPDX-License-Identifier: Apache-2.0
// Scores the text of a table against the shipped machines, which all tests of a program load once.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "sim/score/score.h"

namespace commfuse::score {

inline TableScore score_text(std::string text, std::string_view name, const ScoreOptions& options) {
  static const KnownMachines shipped;
  return score_text(std::move(text), name, options, shipped);
}

}  // namespace commfuse::score
