// SPDX-License-Identifier: Apache-2.0
// Keys of config.json that change neither the work nor the memory of a model, each with the reason.
#pragma once

#include <string>
#include <string_view>

namespace commfuse {

/// Why a key counts for nothing; empty where it may count.
std::string_view why_irrelevant(std::string_view key);

/// Whether it belongs to a vision or audio tower beside the language model, which is left out.
bool is_of_senses(std::string_view key);

}  // namespace commfuse
