// SPDX-License-Identifier: Apache-2.0
// Changes a part that several machines share, in one of the machines.
#pragma once

#include <memory>
#include <utility>

namespace commfuse {

/// Copies the shared part before `how` changes it; does nothing if it is null.
template <class T, class Change>
void change_shared(std::shared_ptr<const T>& shared, const Change& how) {
  if (shared != nullptr) {
    auto copy = std::make_shared<T>(*shared);
    how(*copy);
    shared = std::move(copy);
  }
}

}  // namespace commfuse
