// SPDX-License-Identifier: Apache-2.0
// Escapes text for cells of Markdown tables.
#pragma once

#include <string>
#include <string_view>

namespace commfuse::reports {

/// Returns the text as a cell of a Markdown table, with bars and "<" escaped.
std::string markdown_cell(std::string_view text);

}  // namespace commfuse::reports
