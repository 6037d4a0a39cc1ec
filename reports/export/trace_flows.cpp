// SPDX-License-Identifier: Apache-2.0
#include "reports/export/trace_flows.h"

#include <map>
#include <unordered_map>

#include "model/cost/shape_sizes.h"
#include "model/program/matching.h"

namespace commfuse::reports {

namespace {

/// For each exchange on a rank, the timeline indices of its runs, in order of time; the key is key_of().
using TimelineIndices = std::unordered_map<std::uint64_t, std::vector<std::size_t>>;

std::uint64_t key_of(Rank rank, OpId op) {
  return static_cast<std::uint64_t>(rank) << 32U | static_cast<std::uint64_t>(position(op));
}

TimelineIndices indices_of(const TracedRun& run) {
  TimelineIndices indices;
  for (std::size_t i = 0; i < run.timeline.size(); ++i) {
    const OpSpan& span = run.timeline[i];
    if (exchange_of(*run.program, run.program->ops[position(span.op)]) != nullptr) {
      indices[key_of(span.rank, span.op)].push_back(i);
    }
  }
  return indices;
}

Bytes sent_by(const TracedRun& run, OpId op) {
  const Shape& shape = run.program->shapes[run.program->ops[position(op)].shape];
  if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
    return exchange->sends ? load_of(*exchange, run.sizes) : Bytes{};
  }
  const auto* collective = std::get_if<CollectiveShape>(&shape);
  return collective == nullptr ? Bytes{} : load_of(*collective, run.sizes);
}

}  // namespace

std::vector<Flow> flows_of(const TracedRun& run) {
  const Program& program = *run.program;
  const TimelineIndices indices = indices_of(run);
  std::vector<Flow> flows;
  if (indices.empty()) {
    return flows;
  }
  const Matching matching = match(program);
  std::unordered_map<std::uint64_t, std::size_t> runs;
  for (std::size_t i = 0; i < run.timeline.size(); ++i) {
    const OpSpan& span = run.timeline[i];
    const ExchangeShape* exchange = exchange_of(program, program.ops[position(span.op)]);
    const std::int32_t receiver = exchange == nullptr || !exchange->sends ? -1 : matching.receiver(span.rank, span.op);
    if (receiver < 0) {
      continue;
    }
    const std::size_t run_index = runs[key_of(span.rank, span.op)]++;
    const auto receives = indices.find(key_of(target_of(program, *exchange, span.rank), OpId{receiver}));
    if (receives != indices.end() && run_index < receives->second.size()) {
      flows.push_back({i, receives->second[run_index]});
    }
  }
  return flows;
}

std::vector<UnderWay> bytes_under_way(const TracedRun& run) {
  std::vector<UnderWay> levels;
  if (run.sizes.block.empty()) {
    return levels;
  }
  std::map<std::pair<Rank, Instant>, std::int64_t> changes;
  for (const OpSpan& span : run.timeline) {
    if (const std::int64_t bytes = sent_by(run, span.op).count; bytes > 0 && span.end > span.start) {
      changes[{span.rank, span.start}] += bytes;
      changes[{span.rank, span.end}] -= bytes;
    }
  }
  std::int64_t bytes = 0;
  for (const auto& [when, change] : changes) {
    bytes += change;
    if (change != 0) {
      levels.push_back({when.first, when.second, bytes});
    }
  }
  return levels;
}

}  // namespace commfuse::reports
