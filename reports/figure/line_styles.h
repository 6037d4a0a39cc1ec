// SPDX-License-Identifier: Apache-2.0
// Styles that distinguish series with and without colour.
#pragma once

#include <cstddef>
#include <string_view>

#include "reports/figure/figure.h"

namespace commfuse::reports {

struct LineStyle {
  Role role = Role::first;
  Symbol symbol = Symbol::circle;
  std::string_view dashes;  // empty: a solid line
};

/// Returns the style of the series with this index; colours repeat after the seventh.
constexpr LineStyle style_of(std::size_t index) {
  constexpr std::array<std::string_view, 4> dashes{"", "7 4", "2 3", "9 3 2 3"};
  return {series_roles[index % series_roles.size()], all_symbols[index % all_symbols.size()],
          dashes[index % dashes.size()]};
}

}  // namespace commfuse::reports
