// SPDX-License-Identifier: Apache-2.0
// Writes a calibration as a hardware file, and reports on it.
#pragma once

#include <filesystem>
#include <string>

#include "sim/calibrate/calibrate.h"
#include "sim/calibrate/observations.h"

namespace commfuse::sim {

/// Throws ConfigError if `name` is not a valid machine name, or if the file already exists.
void require_new_machine(const std::string& name, const std::filesystem::path& out);

/// Writes the whole file or nothing, and only if the file can be read back. Throws a ConfigError that names `base`, the
/// machine from which the fit started, if a fitted value is outside the range of hardware files.
void write_machine(const std::filesystem::path& path, const std::string& base, const std::string& yaml);

/// Returns lines that state how well each part was fitted, what was skipped, and where the file is.
std::string calibration_in_words(const calibrate::Observations& observations, const calibrate::Calibration& calibration,
                                 const std::filesystem::path& out);

}  // namespace commfuse::sim
