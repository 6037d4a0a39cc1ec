// SPDX-License-Identifier: Apache-2.0
// Refuses JSON that nlohmann's parser would silently accept.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace commfuse {

/// Limits on a document, and the remedies for messages.
struct JsonRules {
  std::string_view twice;                                         ///< "keep one of them"
  std::size_t deepest = std::numeric_limits<std::size_t>::max();  ///< Levels of nesting.
  std::string_view too_deep = {};                                 ///< "give a config.json of a model"
};

/// Throws ConfigError "path: sentence; remedy" for nesting deeper than the limit, and for an object with a duplicate
/// key, because the parser would drop one of the two values. Ignores syntax errors, which the caller's own parse
/// reports. Parses the text separately, because with a callback the library's parser visits a whole list again for each
/// of its items.
void guard_json(std::string_view text, const std::string& path, const JsonRules& rules);

}  // namespace commfuse
