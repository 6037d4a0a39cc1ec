// SPDX-License-Identifier: Apache-2.0
// The defined words of the page, each with its exact meaning.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace commfuse::reports {

struct Definition {
  std::string_view id;  // "exposed"; its anchor on the page is #def-exposed
  std::string_view word;
  std::string_view meaning;
};

std::span<const Definition> definitions();

/// Returns the word as a link to its definition. Requires an id of the list.
std::string defined(std::string_view id);

/// Returns all definitions as a list with the links' anchors.
std::string definitions_html();

/// Explains the kinds of provenance, weakest first; `used` are the kinds on which some row depends.
std::string provenances_html(std::span<const std::string> used);

}  // namespace commfuse::reports
