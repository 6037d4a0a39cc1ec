// SPDX-License-Identifier: Apache-2.0
// Where the model violates a law today. known_violations.yaml lists them; each must still be one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/laws/law.h"
#include "tests/laws/setting.h"

namespace commfuse::laws {

/// One example, and which other settings it stands for.
struct KnownViolation {
  std::string cause;  ///< A sentence, shared by all of one cause.
  const Law* law = nullptr;
  Setting before;       ///< Minimised.
  Setting after;        ///< What the law compares it with; the same where it looks at one result.
  double factor = 1.0;  ///< The largest of all settings that it stands for.
  /// What a setting has to be of this cause: by key, one of these values. Other keys may be anything.
  std::map<std::string, std::vector<std::string>> where;
};

/// Throws std::runtime_error where an entry names a law or a setting that there is none of.
std::vector<KnownViolation> read_known_violations(const std::string& path);

/// Whether an entry stands for it.
bool is_known(const std::vector<KnownViolation>& known, const Law& law, const Setting& setting, double factor);

}  // namespace commfuse::laws
