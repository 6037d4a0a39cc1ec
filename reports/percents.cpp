// SPDX-License-Identifier: Apache-2.0
#include "reports/percents.h"

#include <fmt/format.h>

#include "model/text/decimals.h"

namespace commfuse::reports {

std::string percent_digits(double share) { return fmt::format("{:.1f}", 100.0 * share); }

std::string signed_percent(double share) { return with_sign(100.0 * share, 1) + "%"; }

}  // namespace commfuse::reports
