// SPDX-License-Identifier: Apache-2.0
// Text inside SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace commfuse::reports {

/// Safe between tags and inside quoted attributes, in HTML and in XML. What is no UTF-8, or no character of XML,
/// becomes U+FFFD.
std::string escaped(std::string_view text);

/// Characters, not bytes, of valid UTF-8.
std::size_t characters(std::string_view text);

}  // namespace commfuse::reports
