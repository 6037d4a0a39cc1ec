// SPDX-License-Identifier: Apache-2.0
// Spans of ops in short notation for tests.
#pragma once

#include "model/program/recorder.h"

namespace commfuse::validate::test {

inline OpSpan span(Rank rank, OpId op, Duration start, Duration end) {
  return {rank, op, Instant(start), Instant(end)};
}
inline OpSpan span(Rank rank, int op, Duration start, Duration end) { return span(rank, OpId{op}, start, end); }

}  // namespace commfuse::validate::test
