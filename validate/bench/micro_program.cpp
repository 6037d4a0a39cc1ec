// SPDX-License-Identifier: Apache-2.0
#include "validate/bench/micro_program.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "model/check.h"
#include "model/program/builder.h"
#include "model/program/names.h"

namespace commfuse::validate {

namespace {

/// Builds a program together with the sizes of its dimensions.
class MicroProgramMaker {
 public:
  explicit MicroProgramMaker(std::int32_t ranks) : builder_("micro-benchmark", Mesh{{{"rank", ranks}}}) {}

  Extent extent(const char* name, std::int64_t elements, std::int32_t blocks = 1) {
    const DimensionId id = builder_.dimension(name, blocks);
    if (position(id) == sizes_.block.size()) {
      sizes_.block.push_back(elements / blocks);
    }
    return {id, blocks};
  }
  /// Returns an operand with random numbers.
  Operand filled(const std::string& name, Extent rows, Extent columns, DType dtype) {
    const TensorId tensor = builder_.input_tensor(name, rows, columns, dtype);
    const BufferId buffer = builder_.buffer(name, BufferRole::input, rows, columns, dtype);
    builder_.initially(builder_.whole(buffer), tensor, 0, 0);
    return {builder_.whole(buffer)};
  }
  Operand empty(const std::string& name, Extent rows, Extent columns, DType dtype) {
    return {builder_.whole(builder_.buffer(name, BufferRole::output, rows, columns, dtype))};
  }
  ProgramBuilder& builder() { return builder_; }

  void add_product(const GemmSize& size) {
    const Extent m = extent("m", size.m);
    const Extent n = extent("n", size.n);
    const Extent k = extent("k", size.k);
    builder_.gemm(
        {.a = filled("a", m, k, size.dtype), .b = filled("b", k, n, size.dtype), .out = empty("c", m, n, size.dtype)});
  }
  void add_exchanges(DType wire, Bytes bytes, int count) {
    const Extent rows = extent("rows", bytes.count / bytes_of(wire) / row_elements);
    const Extent columns = extent("columns", row_elements);
    const Operand from = filled("from", rows, columns, wire);
    const Operand to = empty("to", rows, columns, wire);
    for (int i = 0; i < count; ++i) {
      builder_.exchange({.send = from, .receive = to, .wire = wire});
    }
  }

  MicroProgram made(MicroBenchmark what) && {
    what.ranks = builder_.mesh().ranks();
    return {std::make_shared<const Program>(std::move(builder_).build()), std::move(sizes_), std::move(what)};
  }

 private:
  ProgramBuilder builder_;
  Sizes sizes_;
};

MicroBenchmark gemm_benchmark(const GemmSize& size) {
  return {.op = "product", .dtype = std::string(name_of(size.dtype)), .m = size.m, .n = size.n, .k = size.k};
}

Duration length_of(const OpSpan& span) { return span.end - span.start; }

OpKind kind_of(const MicroProgram& micro, const OpSpan& span) { return micro.program->ops[position(span.op)].kind; }

/// Returns the time from each op's end to the next one's start, rank by rank.
std::vector<Duration> gaps_in(const Timeline& spans) {
  std::vector<Duration> gaps;
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].rank == spans[i - 1].rank) {
      gaps.push_back(std::max(Duration{}, spans[i].start - spans[i - 1].end));
    }
  }
  return gaps;
}

/// Returns the time of each transfer: the n-th op of the sender is paired with the n-th op of the receiver. A transfer
/// starts when both ops are ready, so that its time is that of the shorter op.
std::vector<Duration> transfers_in(const MicroBenchmark& what, const Timeline& spans) {
  std::vector<Duration> send_times;
  std::vector<Duration> receive_times;
  for (const OpSpan& span : spans) {
    (span.rank == what.rank ? send_times : receive_times).push_back(length_of(span));
  }
  std::vector<Duration> samples;
  for (std::size_t i = 0; i < std::min(send_times.size(), receive_times.size()); ++i) {
    samples.push_back(std::min(send_times[i], receive_times[i]));
  }
  return samples;
}

std::vector<Duration> samples_of_rank(const MicroBenchmark& what, const Timeline& spans) {
  std::vector<Duration> samples;
  for (const OpSpan& span : spans) {
    if (span.rank == what.rank) {
      samples.push_back(length_of(span));
    }
  }
  return samples;
}

/// Returns the time of each pair of opposite transfers. A transfer begins when both ranks are ready for it.
std::vector<Duration> pairs_both_ways(const MicroProgram& micro, const Timeline& spans) {
  struct Transfer {
    Instant begin{}, end{};
    int sides = 0;
  };
  std::map<std::pair<std::size_t, std::size_t>, Transfer> transfers;  // by number and lane
  std::map<std::pair<Rank, std::size_t>, std::size_t> numbers;
  std::vector<OpSpan> in_order(spans.begin(), spans.end());
  std::ranges::stable_sort(in_order, {}, [](const OpSpan& span) { return position(span.op); });
  for (const OpSpan& span : in_order) {
    const std::size_t lane = micro.program->ops[position(span.op)].lane;
    Transfer& transfer = transfers[{numbers[{span.rank, lane}]++, lane}];
    transfer.begin = transfer.sides == 0 ? span.start : std::max(transfer.begin, span.start);
    transfer.end = transfer.sides == 0 ? span.end : std::max(transfer.end, span.end);
    ++transfer.sides;
  }
  std::map<std::size_t, Transfer> pairs;
  for (const auto& [key, transfer] : transfers) {
    Transfer& pair = pairs[key.first];
    pair.begin = pair.sides == 0 ? transfer.begin : std::min(pair.begin, transfer.begin);
    pair.end = std::max(pair.end, transfer.end);
    ++pair.sides;
  }
  std::vector<Duration> samples;
  for (const auto& [number, pair] : pairs) {
    samples.push_back(pair.end - pair.begin);
  }
  return samples;
}

}  // namespace

MicroProgram product_alone(std::int32_t ranks, const GemmSize& size) {
  MicroProgramMaker maker(ranks);
  maker.add_product(size);
  return std::move(maker).made(gemm_benchmark(size));
}

MicroProgram kernel_alone(std::int32_t ranks, Function function, DType dtype, Bytes traffic) {
  const std::int64_t inputs = function == Function::add || function == Function::residual ? 2 : 1;
  const std::int64_t width = function == Function::swiglu ? 2 : 1;
  const std::int64_t row_bytes = (inputs * width + 1) * row_elements * bytes_of(dtype);
  check(traffic.count >= row_bytes, "the traffic suffices for one row");
  MicroProgramMaker maker(ranks);
  const Extent rows = maker.extent("rows", traffic.count / row_bytes);
  const Extent columns = maker.extent("columns", 2 * row_elements, 2);  // in pairs
  const Extent half{columns.dimension, 1};
  const bool pairs = function == Function::swiglu;
  std::vector<Operand> from;
  for (std::int64_t i = 0; i < inputs; ++i) {
    from.push_back(maker.filled("in" + std::to_string(i), rows, pairs ? columns : half, dtype));
  }
  maker.builder().elementwise({.function = function, .inputs = from, .out = maker.empty("out", rows, half, dtype)});
  return std::move(maker).made({.op = std::string(name_of(function)),
                                .dtype = std::string(name_of(dtype)),
                                .bytes = traffic.count / row_bytes * row_bytes});
}

MicroProgram exchange_alone(std::int32_t ranks, DType wire, Bytes bytes) {
  MicroProgramMaker maker(ranks);
  maker.add_exchanges(wire, bytes, 1);
  return std::move(maker).made({.op = "exchange", .dtype = std::string(name_of(wire)), .bytes = bytes.count});
}

MicroProgram collective_alone(std::int32_t ranks, CollectiveKind kind, DType wire, Bytes total, Placing placing) {
  check(placing == Placing::out_of_place || can_be_in_place(kind), "a collective can be in place");
  MicroProgramMaker maker(ranks);
  const Extent rows = maker.extent("rows", total.count / bytes_of(wire) / row_elements, ranks);
  const Extent columns = maker.extent("columns", row_elements);
  const Extent own_rows{rows.dimension, 1};
  const bool gathers = kind == CollectiveKind::all_gather;
  const bool scatters = kind == CollectiveKind::reduce_scatter;
  Operand in;
  Operand out;
  if (placing == Placing::in_place) {
    const Operand whole = maker.filled("data", rows, columns, wire);
    ProgramBuilder& builder = maker.builder();
    const Operand own_part{builder.rows_of(whole.begin()->buffer, along(builder.mesh(), 0))};
    in = gathers ? own_part : whole;
    out = scatters ? own_part : whole;
  } else {
    in = maker.filled("in", gathers ? own_rows : rows, columns, wire);
    out = maker.empty("out", scatters ? own_rows : rows, columns, wire);
  }
  maker.builder().collective({.kind = kind, .in = in, .out = out, .wire = wire});
  return std::move(maker).made({.op = std::string(name_of(kind)),
                                .dtype = std::string(name_of(wire)),
                                .bytes = total.count,
                                .in_place = placing == Placing::in_place});
}

MicroProgram transfers_alone(std::int32_t ranks, Rank from, Rank to, DType wire, Bytes bytes, int count) {
  check(from != to && from >= 0 && to >= 0 && from < ranks && to < ranks, "a transfer is between two ranks");
  MicroProgramMaker maker(ranks);
  const Extent rows = maker.extent("rows", bytes.count / bytes_of(wire) / row_elements);
  const Extent columns = maker.extent("columns", row_elements);
  const Operand source = maker.filled("from", rows, columns, wire);
  const Operand target = maker.empty("to", rows, columns, wire);
  const std::int32_t shift = (to - from + ranks) % ranks;
  for (int i = 0; i < count; ++i) {
    ProgramBuilder& builder = maker.builder();
    builder.only_where(builder.exchange({.shift = shift, .send = source, .wire = wire}),
                       {.relation = Relation::equal, .value = from});
    builder.only_where(builder.exchange({.shift = shift, .receive = target, .wire = wire}),
                       {.relation = Relation::equal, .value = to});
  }
  return std::move(maker).made(
      {.op = "transfer", .dtype = std::string(name_of(wire)), .bytes = bytes.count, .rank = from, .peer = to});
}

MicroProgram transfers_both_ways(std::int32_t ranks, Rank first, Rank second, DType wire, Bytes bytes, int count) {
  check(first != second && first >= 0 && second >= 0 && first < ranks && second < ranks,
        "a transfer joins two different ranks of the program");
  MicroProgramMaker maker(ranks);
  const Extent rows = maker.extent("rows", bytes.count / bytes_of(wire) / row_elements);
  const Extent columns = maker.extent("columns", row_elements);
  const Operand source = maker.filled("from", rows, columns, wire);
  const Operand target = maker.empty("to", rows, columns, wire);
  for (int i = 0; i < count; ++i) {
    for (const std::uint16_t lane : {std::uint16_t{0}, std::uint16_t{1}}) {
      const Rank from = lane == 0 ? first : second;
      const Rank to = lane == 0 ? second : first;
      const std::int32_t shift = (to - from + ranks) % ranks;
      ProgramBuilder& builder = maker.builder();
      builder.only_where(
          builder.exchange({.lane = {LaneKind::comm, lane}, .shift = shift, .send = source, .wire = wire}),
          {.relation = Relation::equal, .value = from});
      builder.only_where(
          builder.exchange({.lane = {LaneKind::comm, lane}, .shift = shift, .receive = target, .wire = wire}),
          {.relation = Relation::equal, .value = to});
    }
  }
  return std::move(maker).made(
      {.op = "both_ways", .dtype = std::string(name_of(wire)), .bytes = bytes.count, .rank = first, .peer = second});
}

MicroProgram product_of_rank(std::int32_t ranks, Rank rank, const GemmSize& size) {
  MicroProgram micro = product_alone(ranks, size);
  micro.what.rank = rank;
  return micro;
}

MicroProgram gaps(std::int32_t ranks, bool on_two_lanes) {
  constexpr int ops = 32;
  MicroProgramMaker maker(ranks);
  const Extent rows = maker.extent("rows", 1);
  const Extent columns = maker.extent("columns", row_elements);
  const Operand from = maker.filled("from", rows, columns, DType::fp32);
  const Operand to = maker.empty("to", rows, columns, DType::fp32);
  Waits last;
  for (int i = 0; i < ops; ++i) {
    const Lane lane{on_two_lanes && i % 2 == 1 ? LaneKind::aux : LaneKind::compute, 0};
    last = {maker.builder().elementwise(
        {.lane = lane, .function = Function::copy, .inputs = {from}, .out = to, .waits = last})};
  }
  return std::move(maker).made({.op = on_two_lanes ? "wake" : "next"});
}

MicroProgram beside_each_other(std::int32_t ranks, const GemmSize& size, Bytes bytes, int exchanges, Watched watched) {
  MicroProgramMaker maker(ranks);
  maker.add_product(size);
  maker.add_exchanges(size.dtype, bytes, exchanges);
  MicroBenchmark what = gemm_benchmark(size);
  what.bytes = bytes.count;
  what.op = watched == Watched::product ? "product" : "exchange";
  what.beside = watched == Watched::product ? "exchange" : "product";
  return std::move(maker).made(std::move(what));
}

std::vector<Duration> samples_in(const MicroProgram& micro, const Timeline& spans) {
  if (micro.what.op == "next" || micro.what.op == "wake") {
    return gaps_in(spans);
  }
  if (micro.what.op == "transfer") {
    return transfers_in(micro.what, spans);
  }
  if (micro.what.op == "both_ways") {
    return pairs_both_ways(micro, spans);
  }
  if (micro.what.rank >= 0) {
    return samples_of_rank(micro.what, spans);
  }
  std::map<Rank, OpSpan> products;
  for (const OpSpan& span : spans) {
    if (kind_of(micro, span) == OpKind::gemm) {
      products[span.rank] = span;
    }
  }
  std::map<OpId, Duration> longest;
  for (const OpSpan& span : spans) {
    const bool is_product = kind_of(micro, span) == OpKind::gemm;
    const bool is_inside = span.start >= products[span.rank].start && span.end <= products[span.rank].end;
    const bool is_watched = is_product == (micro.what.op == "product");
    if (micro.what.beside.empty() || (is_watched && (is_product || is_inside))) {
      longest[span.op] = std::max(longest[span.op], length_of(span));
    }
  }
  std::vector<Duration> samples;
  for (const auto& [op, time] : longest) {
    samples.push_back(time);
  }
  return samples;
}

}  // namespace commfuse::validate
