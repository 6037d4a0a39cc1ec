// SPDX-License-Identifier: Apache-2.0
// Default predictions set against the dynamic engine, on machines of the catalogue.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "model/record/engine_agreement.h"

namespace commfuse::score {

/// The MLP of llama-3.1-70b on each machine, on those of 4, 8 and 16 ranks that it has, over 2K, 8K and 32K tokens: the
/// points that `run` plays with `--interference static` and `dynamic`, by the fastest form of each strategy. Uses all
/// cores. `finished` is called after every point, from any thread. Throws ConfigError for a machine that is unknown.
std::vector<EngineAgreement> engine_agreement(const std::vector<std::string>& machines,
                                              const std::function<void()>& finished = {});

/// How many points those machines have, played both ways.
std::size_t runs_of_engine_agreement(const std::vector<std::string>& machines);

}  // namespace commfuse::score
