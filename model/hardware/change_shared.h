// SPDX-License-Identifier: Apache-2.0
// Changing one machine's part that others share.
#pragma once

#include <memory>
#include <utility>

namespace commfuse {

/// Copies what is shared before `how` changes it; nothing where there is none.
template <class T, class Change>
void change_shared(std::shared_ptr<const T>& shared, const Change& how) {
  if (shared != nullptr) {
    auto copy = std::make_shared<T>(*shared);
    how(*copy);
    shared = std::move(copy);
  }
}

}  // namespace commfuse
