// SPDX-License-Identifier: Apache-2.0
// Keys of config.json that change neither the work nor the memory of a model, each with the reason.
#pragma once

#include <string>
#include <string_view>

namespace commfuse {

/// Returns the reason why a key has no effect; empty when it may have one.
std::string_view why_irrelevant(std::string_view key);

/// Returns true if the key belongs to a vision or audio tower next to the language model; towers are not modelled.
bool is_tower_key(std::string_view key);

}  // namespace commfuse
