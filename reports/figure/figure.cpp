// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/figure.h"

namespace commfuse::reports {

std::string_view name_of(Role role) {
  constexpr std::array<std::string_view, 14> names{"ink",     "muted", "essential", "local", "communication",
                                                   "exposed", "first", "second",    "third", "fourth",
                                                   "fifth",   "sixth", "seventh",   "tie"};
  return names[static_cast<std::size_t>(role)];
}

std::string_view name_of(Symbol symbol) {
  constexpr std::array<std::string_view, 4> names{"circle", "square", "diamond", "triangle"};
  return names[static_cast<std::size_t>(symbol)];
}

}  // namespace commfuse::reports
