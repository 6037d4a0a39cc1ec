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
constexpr LineStyle style_of(std::size_t place) {
  constexpr std::array<std::string_view, 4> dashes{"", "7 4", "2 3", "9 3 2 3"};
  return {series_roles[place % series_roles.size()], all_symbols[place % all_symbols.size()],
          dashes[place % dashes.size()]};
}

}  // namespace commfuse::reports
