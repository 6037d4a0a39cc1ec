// SPDX-License-Identifier: Apache-2.0
// Text of files inside Markdown tables.
#pragma once

#include <string>
#include <string_view>

namespace commfuse::reports {

/// Returns a file's text as a cell, with its bars and the start of its tags escaped.
std::string markdown_cell(std::string_view text);

}  // namespace commfuse::reports
