// SPDX-License-Identifier: Apache-2.0
// Distribution of prediction errors: Student's t with four degrees of freedom, scaled so that 68.27% of errors are
// within one standard error, as in a normal distribution.
//
// On rows that no fit has seen, a normal distribution with the same standard error covers the nominal 68%, but only 89
// to 91% where it should cover 95%: most rows are closer than it predicts and a few are much farther off.
// docs/decisions/0056 has the numbers and the reason for four degrees of freedom.
#pragma once

namespace commfuse {

/// Returns the share of errors below this number of standard errors; 0.5 at 0. Uses no function but the square root, so
/// every machine computes the same result.
double share_below(double standard_errors);

/// Returns the inverse of share_below() to within 1e-12: the number of standard errors below which this share of errors
/// is. Requires 0 < share < 1.
double errors_with_share_below(double share);

}  // namespace commfuse
