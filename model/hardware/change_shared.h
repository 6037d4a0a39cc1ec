// SPDX-License-Identifier: Apache-2.0
// Changes, in one machine, a part that it shares with other machines.
#pragma once

#include <memory>
#include <utility>

namespace commfuse {

/// Copies the shared part before `change` changes it; does nothing if it is null.
template <class T, class Change>
void change_shared(std::shared_ptr<const T>& shared, const Change& change) {
  if (shared != nullptr) {
    auto copy = std::make_shared<T>(*shared);
    change(*copy);
    shared = std::move(copy);
  }
}

}  // namespace commfuse
