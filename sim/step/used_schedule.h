// SPDX-License-Identifier: Apache-2.0
// The schedules that a whole model uses at its sites, so that a reader of its row can simulate each site again.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/strategies/options.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"

namespace commfuse {

struct Implementation;

struct UsedSchedule {
  std::string site;  ///< Name in LayerSite: "qkv", "down_backward". The attention block of Ulysses is "ulysses".
  Scope scope = Scope::qkv;
  std::int32_t ranks = 1;
  const Strategy* strategy = nullptr;
  StrategyOptions options;
  const Implementation* implementation = nullptr;  ///< Kernels that run the schedule; null for ideal kernels.
};

/// Returns the schedules with their sites, for example "slices=8 (qkv, gate_up); slices=2 (down)". Options have the
/// names of their columns; an option is omitted if every schedule of the site has its default. A strategy other than
/// `row_strategy`, and an implementation, precede their options: "te group=1 (qkv)". Empty if `row_strategy` has a
/// single schedule at every site.
std::string in_words(std::span<const UsedSchedule> schedules, std::string_view row_strategy);

}  // namespace commfuse
