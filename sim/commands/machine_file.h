// SPDX-License-Identifier: Apache-2.0
// A calibration as a hardware file, and what is said about it.
#pragma once

#include <filesystem>
#include <string>

#include "sim/calibrate/calibrate.h"
#include "sim/calibrate/observations.h"

namespace commfuse::sim {

/// Throws ConfigError for a name that no machine may have, and for a file that is there already.
void require_new_machine(const std::string& name, const std::filesystem::path& out);

/// Whole or not at all, and only when it reads back: a fit may end where no hardware file may go, which is a
/// ConfigError that names `base`, what it started from.
void write_machine(const std::filesystem::path& path, const std::string& base, const std::string& yaml);

/// How well each part was fitted, what was left out, and where the file is, in lines.
std::string calibration_in_words(const calibrate::Observations& seen, const calibrate::Calibration& calibration,
                                 const std::filesystem::path& out);

}  // namespace commfuse::sim
