// SPDX-License-Identifier: Apache-2.0
// Settings in the page's questions, by command-line keys.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/config/settings.h"

namespace commfuse::page {

/// Returns the settings of {"key": "text", …}; missing keys get their defaults. Throws ConfigError for the first key
/// that is unknown or whose value is not a string, otherwise with every mistake.
Settings settings_of(const nlohmann::json& texts);

/// Returns the command of the program that produces the same rows.
std::string command_of(std::string_view verb, const Settings& settings);

}  // namespace commfuse::page
