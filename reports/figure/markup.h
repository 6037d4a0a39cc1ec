// SPDX-License-Identifier: Apache-2.0
// Escapes text inside SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace commfuse::reports {

/// Returns text that is safe between tags and inside quoted attributes, in HTML and in XML. Bytes that are not UTF-8,
/// and characters outside XML, become U+FFFD.
std::string escaped(std::string_view text);

}  // namespace commfuse::reports
