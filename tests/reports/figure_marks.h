// SPDX-License-Identifier: Apache-2.0
// Marks of figures.
#pragma once

#include <variant>
#include <vector>

#include "reports/figure/figure.h"

namespace commfuse::test {

/// Returns the marks of one kind, in order.
template <class Kind>
std::vector<Kind> marks_of(const reports::Figure& figure) {
  std::vector<Kind> marks;
  for (const reports::Mark& mark : figure.marks) {
    if (const auto* mark_of_kind = std::get_if<Kind>(&mark)) {
      marks.push_back(*mark_of_kind);
    }
  }
  return marks;
}

}  // namespace commfuse::test
