// SPDX-License-Identifier: Apache-2.0
// Keys of the overlap configuration of an implementation's library, such as TransformerEngine's tp_comm_overlap_cfg,
// and the schedule that implements the default method of each key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/strategies/options.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"

namespace commfuse {

/// One key and its schedule, which is generated or read from a file.
struct OverlapKey {
  std::string key;                     ///< "qkv_fprop".
  std::string method;                  ///< Default method in the words of the library: "ring_exchange".
  Scope scope{};                       ///< Part of a layer that the key configures.
  const Strategy* strategy = nullptr;  ///< Null if a file has the schedule.
  StrategyOptions options;             ///< Holds the values of `fixed`.
  OptionSet fixed;
  std::string file;  ///< The schedule's name in configs/schedules, or its path; empty if `strategy` generates it.
};

/// Loads the map `keys` of an implementation's file in the order of its keys; empty if the file has none. Throws
/// ConfigError like load_implementation.
std::vector<OverlapKey> load_overlap_keys(std::string_view name_or_path);

}  // namespace commfuse
