// SPDX-License-Identifier: Apache-2.0
// The words of the page, each with what it means, exactly.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace commfuse::reports {

struct Definition {
  std::string_view id;  // "exposed"; its place on the page is #def-exposed
  std::string_view word;
  std::string_view meaning;
};

std::span<const Definition> definitions();

/// The word as a link to its definition. Requires an id of the list.
std::string defined(std::string_view id);

/// All of them as a list that the links point into.
std::string definitions_html();

/// What the kinds of parameters are, weakest first; `used` are those behind some row.
std::string provenances_html(std::span<const std::string> used);

}  // namespace commfuse::reports
