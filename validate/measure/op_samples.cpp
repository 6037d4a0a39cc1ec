// SPDX-License-Identifier: Apache-2.0
#include "validate/measure/op_samples.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "model/cost/shape_sizes.h"
#include "model/program/names.h"

namespace commfuse::validate {

namespace {

/// Spans of one op on every rank that takes part.
using OpSpans = std::map<Rank, OpSpan>;

Duration longest_of(const OpSpans& spans) {
  Duration longest{};
  for (const auto& [rank, span] : spans) {
    longest = std::max(longest, span.end - span.start);
  }
  return longest;
}

/// Returns the time on the slowest rank, from when the rank and its two neighbours in the exchange are ready.
Duration longest_exchange(const Mesh& mesh, const ExchangeShape& shape, const OpSpans& spans) {
  Duration longest{};
  for (const auto& [rank, span] : spans) {
    const Instant ready = std::max({span.start, spans.at(mesh.shifted(rank, shape.axis, shape.shift)).start,
                                    spans.at(mesh.shifted(rank, shape.axis, -shape.shift)).start});
    longest = std::max(longest, span.end - ready);
  }
  return longest;
}

Duration from_last_start(const OpSpans& spans) {
  Instant start = spans.begin()->second.start;
  Instant end = spans.begin()->second.end;
  for (const auto& [rank, span] : spans) {
    start = std::max(start, span.start);
    end = std::max(end, span.end);
  }
  return end - start;
}

/// Makes a micro-benchmark with one sample from the spans of an op; nothing for an op that is skipped.
class Sampled {
 public:
  Sampled(const Program& program, const Sizes& sizes, const OpSpans& spans)
      : program_(program), sizes_(sizes), spans_(spans) {}

  std::optional<MicroBenchmark> operator()(const GemmShape& shape) const {
    if (shape.accumulate || is_part_of_kernel(shape)) {
      return std::nullopt;
    }
    const GemmSize size = gemm_size(shape, sizes_);
    return MicroBenchmark{.op = "product",
                          .dtype = std::string(name_of(size.dtype)),
                          .m = size.m,
                          .n = size.n,
                          .k = size.k,
                          .samples = {longest_of(spans_)}};
  }
  std::optional<MicroBenchmark> operator()(const AttentionShape& /*shape*/) const { return std::nullopt; }
  std::optional<MicroBenchmark> operator()(const ElementwiseShape& shape) const {
    return MicroBenchmark{.op = std::string(name_of(shape.function)),
                          .dtype = std::string(name_of(shape.dtype)),
                          .bytes = traffic_of(shape, sizes_).count,
                          .samples = {longest_of(spans_)}};
  }
  std::optional<MicroBenchmark> operator()(const ExchangeShape& shape) const {
    if (!shape.sends || !shape.receives || is_credit(shape) || !on_all_ranks()) {
      return std::nullopt;
    }
    return MicroBenchmark{.op = "exchange",
                          .dtype = std::string(name_of(shape.wire)),
                          .bytes = load_of(shape, sizes_).count,
                          .samples = {longest_exchange(program_.mesh, shape, spans_)}};
  }
  std::optional<MicroBenchmark> operator()(const CollectiveShape& shape) const {
    if (program_.mesh.axes.size() != 1 || !on_all_ranks()) {
      return std::nullopt;
    }
    return MicroBenchmark{.op = std::string(name_of(shape.kind)),
                          .dtype = std::string(name_of(shape.wire)),
                          .bytes = load_of(shape, sizes_).count,
                          .samples = {from_last_start(spans_)}};
  }

 private:
  [[nodiscard]] bool on_all_ranks() const { return spans_.size() == static_cast<std::size_t>(program_.mesh.ranks()); }

  const Program& program_;
  const Sizes& sizes_;
  const OpSpans& spans_;
};

bool is_same(const MicroBenchmark& a, const MicroBenchmark& b) {
  MicroBenchmark copy = a;
  copy.samples = b.samples;
  return copy == b;
}

}  // namespace

void add_op_samples(const Program& program, const Sizes& sizes, const Timeline& spans,
                    std::vector<MicroBenchmark>& to) {
  std::map<OpId, OpSpans> by_op;
  for (const OpSpan& span : spans) {
    by_op[span.op][span.rank] = span;
  }
  for (const auto& [op, ranks] : by_op) {
    const Shape& shape = program.shapes[program.ops[position(op)].shape];
    std::optional<MicroBenchmark> sample = std::visit(Sampled(program, sizes, ranks), shape);
    if (!sample) {
      continue;
    }
    sample->beside = inside_schedule;
    sample->ranks = program.mesh.ranks();
    const auto match = std::ranges::find_if(to, [&](const MicroBenchmark& other) { return is_same(*sample, other); });
    if (match == to.end()) {
      to.push_back(std::move(*sample));
    } else {
      match->samples.push_back(sample->samples.front());
    }
  }
}

}  // namespace commfuse::validate
