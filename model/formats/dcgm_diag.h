// SPDX-License-Identifier: Apache-2.0
// Reads the output of `dcgmi diag -j`: DCGM 1.7 to 3.x ("DCGM GPU Diagnostic", results by gpu_ids) and 4.x ("DCGM
// Diagnostic", results by entity, warnings with codes). Only the values below are kept; serial numbers are not.
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

/// Returns "reset", "isolate" and so on.
std::string name_of(DcgmSeverity severity);

struct DcgmWarning {
  std::string text;
  std::optional<int> error;     ///< dcgmError_t; missing in versions before 3.3.
  std::optional<int> category;  ///< dcgmErrorCategory_t
  std::optional<DcgmSeverity> severity;
};

/// Result of one test for one entity, or of the whole test.
struct DcgmResult {
  std::string category;   ///< "Deployment", "Hardware", "Integration", "Stress"
  std::string test;       ///< "pcie"
  std::string entity;     ///< "GPU", "NvSwitch", "CPU"; empty for the whole test.
  std::optional<int> id;  ///< The entity's number; missing for the whole test.
  DcgmStatus status = DcgmStatus::pass;
  std::vector<DcgmWarning> warnings;
  std::vector<std::string> info;
};

struct DcgmDiagnostic {
  std::string version;  ///< Version of DCGM; empty if the file has none.
  std::string driver;
  std::vector<DcgmResult> results;
  std::string error;               ///< Reason why the diagnostic could not run; empty if it ran.
  std::vector<std::string> notes;  ///< Contents of the file that are not used.
};

/// Error for a string that is not from dcgmi diag.
class NoDcgmDiagnostic : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// Parses the output of dcgmi diag. Text that dcgmi prints before the JSON is noted. Throws NoDcgmDiagnostic for
/// another program's text, and ConfigError for a file that is cut off, has an unknown status, or has neither a result
/// nor an error.
DcgmDiagnostic read_dcgm_diag(std::string_view text, const std::string& path);

}  // namespace commfuse
