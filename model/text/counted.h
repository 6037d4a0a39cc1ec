// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace commfuse {

/// Returns "1 rank" or "8 ranks"; a noun with another plural is given with it, as in counted(2, "entry", "entries").
template <std::integral Count>
std::string counted(Count count, std::string_view noun, std::string_view plural = "") {
  return count == 1       ? fmt::format("1 {}", noun)
         : plural.empty() ? fmt::format("{} {}s", count, noun)
                          : fmt::format("{} {}", count, plural);
}

}  // namespace commfuse
