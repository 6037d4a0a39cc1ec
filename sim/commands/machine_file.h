// SPDX-License-Identifier: Apache-2.0
// Writes a calibration as a hardware file, and reports on it.
#pragma once

#include <filesystem>
#include <string>

#include "sim/calibrate/calibrate.h"
#include "sim/calibrate/observations.h"

namespace commfuse::sim {

/// Throws ConfigError if `name` is not a valid name of a machine, or if the file exists already.
void require_new_machine(const std::string& name, const std::filesystem::path& out);

/// Writes the whole file, or none, and only if it reads back. A fit may end outside the range of hardware files; that
/// is a ConfigError that names `base`, the machine it started from.
void write_machine(const std::filesystem::path& path, const std::string& base, const std::string& yaml);

/// Returns lines that say how well each part was fitted, what was left out, and where the file is.
std::string calibration_in_words(const calibrate::Observations& seen, const calibrate::Calibration& calibration,
                                 const std::filesystem::path& out);

}  // namespace commfuse::sim
