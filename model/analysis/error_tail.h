// SPDX-License-Identifier: Apache-2.0
// Distribution of prediction errors: Student's t with four degrees of freedom, scaled so that one standard error holds
// as much as in a normal distribution, 68.27%.
//
// On rows that no fit has seen, a normal distribution with the same standard error holds the promised 68%, but only 89
// to 91% where it promises 95%: most rows are closer than it says and a few are much farther off. docs/decisions/0056
// has the numbers and the reason for four.
#pragma once

namespace commfuse {

/// Returns the share of errors below this many standard errors; 0.5 at 0. Uses only square roots, so every machine
/// gives the same result.
double share_below(double standard_errors);

/// Returns the inverse of share_below() to within 1e-12: the number of standard errors below which this share lies.
/// Requires 0 < share < 1.
double errors_with_share_below(double share);

}  // namespace commfuse
