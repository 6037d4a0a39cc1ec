// SPDX-License-Identifier: Apache-2.0
// Compares default predictions with predictions of the dynamic engine, on machines of the catalogue.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "model/record/engine_agreement.h"

namespace commfuse::score {

/// Simulates the MLP of llama-3.1-70b on each machine, for 2K, 8K and 32K tokens on 4, 8 and 16 ranks; omits rank
/// counts that exceed the GPUs of the machine. Each point runs twice, as with `run --interference static` and
/// `dynamic`, with the fastest form of each strategy. Uses all cores. `finished` is called after every run, from any
/// thread. Throws ConfigError for an unknown machine.
std::vector<EngineAgreement> engine_agreement(const std::vector<std::string>& machines,
                                              const std::function<void()>& finished = {});

/// Returns the number of runs for these machines: two per point.
std::size_t runs_of_engine_agreement(const std::vector<std::string>& machines);

}  // namespace commfuse::score
