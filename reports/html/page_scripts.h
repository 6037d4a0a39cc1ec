// SPDX-License-Identifier: Apache-2.0
// What makes a page interactive. Scripts are known to the page's policy by their digests, so nothing else can run.
#pragma once

#include <string>
#include <string_view>

namespace commfuse::reports {

/// The sources that a policy allows: "'sha256-...' 'sha256-...'".
std::string script_sources();

/// The chart library's block, empty where this program has none, and our own script, which must stand last.
std::string page_scripts();

/// Why this program draws static figures only, as a sentence's end; empty: it has the chart library.
std::string_view no_charts();

}  // namespace commfuse::reports
