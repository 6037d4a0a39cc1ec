// SPDX-License-Identifier: Apache-2.0
// Reads what `dcgmi diag -j` prints: DCGM 1.7 to 3.x ("DCGM GPU Diagnostic", results by gpu_ids) and 4.x ("DCGM
// Diagnostic", results by entity, warnings with codes). Of a file only what is below is kept: no serial number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config_error.h"

namespace commfuse {

enum class DcgmStatus : std::uint8_t { pass, skip, warn, fail };

/// Severities, in the order of dcgm_errors.h.
enum class DcgmSeverity : std::uint8_t { none, monitor, isolate, unknown, triage, config, reset };

/// "reset", "isolate" and so on.
std::string name_of(DcgmSeverity severity);

struct DcgmWarning {
  std::string text;
  std::optional<int> error;     ///< dcgmError_t; not told by versions before 3.3.
  std::optional<int> category;  ///< dcgmErrorCategory_t
  std::optional<DcgmSeverity> severity;
};

/// The result of one test for one entity, or as a whole.
struct DcgmResult {
  std::string category;   ///< "Deployment", "Hardware", "Integration", "Stress"
  std::string test;       ///< "pcie"
  std::string entity;     ///< "GPU", "NvSwitch", "CPU"; empty for the test as a whole.
  std::optional<int> id;  ///< The entity's number; missing for the test as a whole.
  DcgmStatus status = DcgmStatus::pass;
  std::vector<DcgmWarning> warnings;
  std::vector<std::string> info;
};

struct DcgmDiagnostic {
  std::string version;  ///< Version of DCGM; empty if it is not told.
  std::string driver;
  std::vector<DcgmResult> results;
  std::string error;               ///< Why it could not run; empty if it did.
  std::vector<std::string> notes;  ///< Contents of the file that are not used.
};

/// A text that is not from dcgmi diag.
class NoDcgmDiagnostic : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// Text that dcgmi prints before its document is noted. Throws NoDcgmDiagnostic for another program's text, ConfigError
/// for a file that is cut off or has an unknown status.
DcgmDiagnostic read_dcgm_diag(std::string_view text, const std::string& path);

}  // namespace commfuse
