// SPDX-License-Identifier: Apache-2.0
// How errors of predictions are distributed: Student's t with four degrees of freedom, scaled so that one standard
// error holds as much as of a normal distribution, 68.27 %.
//
// On rows that no fit has seen a normal distribution with the same standard error holds 68 % where 68 % is promised,
// but 89 to 91 % where it is 95 %: most rows are nearer than it says and some much farther. docs/decisions/0056 has the
// numbers, and why four.
#pragma once

namespace commfuse {

/// The share of errors below so many standard errors; 0.5 at 0. Only square roots: the same everywhere.
double share_below(double standard_errors);

/// The other way round, to 1e-12: below how many standard errors such a share lies. Requires 0 < share < 1.
double errors_with_share_below(double share);

}  // namespace commfuse
