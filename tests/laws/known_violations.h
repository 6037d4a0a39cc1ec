// SPDX-License-Identifier: Apache-2.0
// Known violations of laws by the model. known_violations.yaml lists them; each must still violate its law.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/laws/law.h"
#include "tests/laws/setting.h"

namespace commfuse::laws {

/// An entry of the list: an example of a violation, and the other settings that the entry covers.
struct KnownViolation {
  std::string cause;  ///< A sentence, shared by all violations of this cause.
  const Law* law = nullptr;
  Setting before;  ///< Minimized.
  Setting after;   ///< The setting that the law compares with `before`; equal to it if the law checks a single result.
  double factor = 1.0;  ///< The largest factor of all settings that the entry covers.
  /// Conditions on a setting of this cause: by key, the allowed values. Other keys may have any value.
  std::map<std::string, std::vector<std::string>> where;
};

/// Throws std::runtime_error if the file cannot be read as YAML, if a law is unknown, or if an entry's `setting` or
/// `change` has an unknown key or a value that the key cannot have.
std::vector<KnownViolation> read_known_violations(const std::string& path);

/// Returns whether an entry covers the violation.
bool is_known(const std::vector<KnownViolation>& known, const Law& law, const Setting& setting, double factor);

}  // namespace commfuse::laws
