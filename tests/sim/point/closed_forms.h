// SPDX-License-Identifier: Apache-2.0
// Cases that the tests of closed forms share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>

#include "model/units.h"

namespace commfuse::test {

/// Calls check(ranks, p) with `from` to 9 ranks and every transfer time p.
template <class Check>
void for_all_ranks_and_transfers(std::int32_t from, std::span<const Duration> transfers, Check check) {
  for (std::int32_t ranks = from; ranks <= 9; ++ranks) {
    for (const Duration p : transfers) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, p = " << p.count() << " ps");
      check(ranks, p);
    }
  }
}

}  // namespace commfuse::test
