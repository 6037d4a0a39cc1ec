// SPDX-License-Identifier: Apache-2.0
// Formats shares as percentages.
#pragma once

#include <string>

namespace commfuse::reports {

/// Formats a share as "63.1", for columns and sentences that name the unit themselves.
std::string percent_digits(double share);
/// Formats a share as "+13.5%".
std::string signed_percent(double share);

}  // namespace commfuse::reports
