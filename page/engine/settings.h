// SPDX-License-Identifier: Apache-2.0
// What the page asks with: settings by the keys of the command line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/config/settings.h"

namespace commfuse::page {

/// The settings of {"key": "text", …}; what is not there is at its default. Throws ConfigError with every mistake.
Settings settings_of(const nlohmann::json& texts);

/// The command of the program that gives the same rows.
std::string command_of(std::string_view verb, const Settings& settings);

}  // namespace commfuse::page
