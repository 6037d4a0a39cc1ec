// SPDX-License-Identifier: Apache-2.0
// Scripts of interactive pages. The page's policy names scripts by their digests, so no other script can run.
#pragma once

#include <string>
#include <string_view>

namespace commfuse::reports {

/// Returns the sources that a policy allows: "'sha256-...' 'sha256-...'".
std::string script_sources();

/// Returns the chart library's block, empty if this program has none, and our own script, which must be last.
std::string page_scripts();

/// Returns why this program draws only static figures, as the end of a sentence; empty if it has the chart library.
std::string_view no_charts();

}  // namespace commfuse::reports
