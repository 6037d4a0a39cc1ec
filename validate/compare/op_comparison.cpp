// SPDX-License-Identifier: Apache-2.0
#include "validate/compare/op_comparison.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "model/check.h"
#include "model/program/matching.h"
#include "model/program/names.h"

namespace commfuse::validate {

namespace {

void add(OpTimes& to, const OpSpan& predicted, const OpSpan& measured) {
  ++to.ops;
  to.predicted += predicted.end - predicted.start;
  to.measured += measured.end - measured.start;
}

Duration difference(const OpTimes& times) {
  return std::max(times.predicted - times.measured, times.measured - times.predicted);
}

}  // namespace

double OpTimes::ratio() const { return predicted > Duration{} ? to_seconds(measured) / to_seconds(predicted) : 0.0; }

Timeline of_measured_ranks(const Timeline& predicted, const Timeline& measured) {
  Timeline spans;
  std::ranges::copy_if(predicted, std::back_inserter(spans), [&](const OpSpan& span) {
    return std::ranges::find(measured, span.rank, &OpSpan::rank) != measured.end();
  });
  return spans;
}

bool same_ops(const Timeline& a, const Timeline& b) {
  return std::ranges::equal(
      a, b, [](const OpSpan& first, const OpSpan& other) { return first.rank == other.rank && first.op == other.op; });
}

ComparedOps compared_ops(const Program& program, const Timeline& predicted, const Timeline& measured) {
  check(same_ops(predicted, measured) && !measured.empty(), "both timelines are of the same schedule");
  std::map<OpKind, OpTimes> by_kind;
  std::map<OpId, OpTimes> by_op;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const OpId op = measured[i].op;
    add(by_kind[program.ops[position(op)].kind], predicted[i], measured[i]);
    add(by_op[op], predicted[i], measured[i]);
  }
  ComparedOps result;
  for (auto& [kind, times] : by_kind) {
    times.what = name_of(kind);
    result.kinds.push_back(std::move(times));
  }
  const auto furthest = std::ranges::max_element(by_op, {}, [](const auto& entry) { return difference(entry.second); });
  result.furthest = furthest->second;
  result.furthest.what = op_in_words(program, furthest->first);
  return result;
}

}  // namespace commfuse::validate
