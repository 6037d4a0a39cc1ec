// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/calls.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "validate/reference/collective.h"

namespace commfuse::validate {

namespace {

template <class Kind>
const Kind& shape_of(const Program& program, const At& at) {
  return std::get<Kind>(program.shapes[at.command->shape]);
}

/// Returns true if a wire of dtype `wire` changes no value that is stored in dtype `stored`.
bool passes_unchanged(DType stored, DType wire) { return stored == wire || wire == DType::fp32; }

/// Returns the parts of a move. Omits rows that are already in place, unless the wire's dtype rounds them. Other ranks
/// may read such rows while they are rounded in place, because rounding a value once or twice gives the same result.
std::vector<MoveCall::Part> parts_between(const Stack& from, const Stack& to, DType wire) {
  std::vector<MoveCall::Part> parts;
  for (const std::vector<Panel>& piece : rows_in_step(std::array{from, to})) {
    if (!(piece[0] == piece[1]) || !passes_unchanged(piece[0].dtype, wire)) {
      parts.push_back({piece[0], piece[1]});
    }
  }
  return parts;
}

/// Returns a contiguous panel of the operand's shape.
Panel packed_like(const Stack& stack, Scratch& scratch) {
  return scratch.like(rows_of(stack), stack.front().columns, stack.front().dtype);
}

}  // namespace

MoveCall local_move(const Stack& from, const Stack& to, DType wire) {
  return {.parts = parts_between(from, to, wire), .wire = wire, .link = {.kind = LinkKind::copy, .ctas = 0}};
}

Panel Scratch::like(std::int64_t rows, std::int64_t columns, DType dtype) {
  const Panel panel{base_ + static_cast<Address>(used_), rows, columns, columns, dtype};
  used_ += rounded_up_to_alignment(panel.bytes().count);
  highest_ = std::max(highest_, used_);
  return panel;
}

Stack Calls::input(const At& at, std::size_t index) const {
  return joined(layout_.stack(at.place, at.command->inputs[index]));
}

Stack Calls::output(const At& at) const { return joined(layout_.stack(at.place, at.command->outputs[0])); }

Panel Calls::as_one_panel(const Stack& stack, Scratch& scratch, std::vector<Call>& calls) const {
  if (stack.size() == 1) {
    return stack.front();
  }
  const Panel packed = packed_like(stack, scratch);
  calls.emplace_back(local_move(stack, {packed}, packed.dtype));
  return packed;
}

std::vector<Call> Calls::compute(const At& at, Scratch& scratch) const {
  const bool copies =
      at.command->kind == OpKind::elementwise && shape_of<ElementwiseShape>(program_, at).function == Function::copy;
  if (options_.functions == Functions::none && !copies) {
    return {};
  }
  scratch.reset();
  switch (at.command->kind) {
    case OpKind::gemm: return product(at, scratch);
    case OpKind::attention: return attention(at, scratch);
    default: return function(at);
  }
}

/// Rows of the result correspond to rows of op(a), so a GEMM whose rows are not contiguous becomes several GEMMs, one
/// after another, which give the same bits. The summed dimension must be contiguous.
std::vector<Call> Calls::product(const At& at, Scratch& scratch) const {
  const auto& shape = shape_of<GemmShape>(program_, at);
  std::vector<Call> calls;
  const Panel b = as_one_panel(input(at, 1), scratch, calls);
  const Stack a = input(at, 0);
  const Stack out = output(at);
  ProductCall call{.b = b,
                   .transpose_a = shape.transpose_a,
                   .transpose_b = shape.transpose_b,
                   .accumulate = shape.accumulate,
                   .sum_order = options_.sum_order,
                   .multiprocessors = options_.multiprocessors};
  if (!shape.transpose_a) {
    for (const std::vector<Panel>& piece : rows_in_step(std::array{a, out})) {
      call.a = piece[0];
      call.out = piece[1];
      calls.emplace_back(call);
    }
    return calls;
  }
  const Panel packed_a = as_one_panel(a, scratch, calls);  // k x m: its columns correspond to rows of the result
  std::int64_t row = 0;
  for (const Panel& piece : out) {
    call.a = packed_a;
    call.a.at += static_cast<Address>(row * bytes_of(packed_a.dtype));
    call.a.columns = piece.rows;
    call.out = piece;
    calls.emplace_back(call);
    row += piece.rows;
  }
  return calls;
}

std::vector<Call> Calls::function(const At& at) const {
  const auto& shape = shape_of<ElementwiseShape>(program_, at);
  std::vector<Stack> stacks{output(at)};
  for (std::size_t i = 0; i < at.command->inputs.size(); ++i) {
    stacks.push_back(input(at, i));
  }
  std::vector<Call> calls;
  for (std::vector<Panel>& piece : rows_in_step(stacks)) {
    calls.emplace_back(FunctionCall{.function = shape.function,
                                    .functions = options_.functions,
                                    .sum_order = options_.sum_order,
                                    .block = sizes_.block[position(shape.columns.dimension)],
                                    .inputs = {piece.begin() + 1, piece.end()},
                                    .out = piece.front()});
  }
  return calls;
}

/// Every region of queries has its own position in the sequence, so regions are not joined.
std::vector<Call> Calls::attention(const At& at, Scratch& scratch) const {
  const auto& shape = shape_of<AttentionShape>(program_, at);
  std::vector<Call> calls;
  AttentionCall call{.layout = layout_of(sizes_, shape),
                     .functions = options_.functions,
                     // The fast kernels compute real functions only.
                     .sum_order = options_.functions == Functions::real ? options_.sum_order : SumOrder::ascending,
                     .kernel = options_.attention,
                     .keys = as_one_panel(input(at, 1), scratch, calls)};
  const std::int64_t block = sizes_.block[position(shape.queries.dimension)];
  const Stack out = output(at);
  std::int64_t finished_rows = 0;
  for (std::size_t i = 0; i < at.command->positions.size(); ++i) {
    const Stack region{layout_.panel(at.place, at.command->inputs[0][i])};
    std::int64_t row = at.command->positions[i] * block;
    for (const std::vector<Panel>& piece :
         rows_in_step(std::array{region, slice_of(out, finished_rows, region.front().rows)})) {
      call.parts.push_back({.queries = piece[0], .first_row = row, .out = piece[1]});
      row += piece[0].rows;
    }
    finished_rows += region.front().rows;
  }
  calls.emplace_back(std::move(call));
  return calls;
}

std::vector<Call> Calls::transfer(const At& from, const At& to, Scratch& scratch) const {
  const bool sends = from.command != nullptr && !from.command->inputs.empty();
  const bool receives = to.command != nullptr && !to.command->outputs.empty();
  if (!sends && !receives) {
    return {};
  }
  scratch.reset();
  const At& known = sends ? from : to;
  const Stack source = sends ? input(from, 0) : Stack{};
  const Stack target = receives ? output(to) : Stack{packed_like(source, scratch)};
  const Stack operand = sends ? source : Stack{packed_like(target, scratch)};
  const DType wire = shape_of<ExchangeShape>(program_, known).wire;
  return {MoveCall{.parts = parts_between(operand, target, wire), .wire = wire, .link = options_.link}};
}

DeviceLink Calls::collective_link(const CollectiveShape& shape, std::size_t members) const {
  DeviceLink link = options_.link;
  if (link.kind == LinkKind::paced) {
    const Bytes total{sizes_.elements(shape.rows) * sizes_.elements(shape.columns) * bytes_of(shape.wire)};
    // The pace covers the whole collective, however many calls it consists of, because the calls follow each other.
    link.pace = {.latency = ring_time(options_.link.pace, total, static_cast<int>(members),
                                      shape.kind == CollectiveKind::all_reduce),
                 .bandwidth = BytesPerSecond{1e18}};
  }
  return link;
}

std::vector<Call> Calls::meet(std::span<const At> members, std::span<const std::size_t> outputs,
                              Scratch& scratch) const {
  scratch.reset();
  const CollectiveKind kind = shape_of<CollectiveShape>(program_, members.front()).kind;
  if (!adds(kind)) {
    return gathered(members, outputs);
  }
  return options_.functions == Functions::none ? std::vector<Call>{} : summed(members, outputs, scratch);
}

std::vector<Call> Calls::gathered(std::span<const At> members, std::span<const std::size_t> outputs) const {
  const auto& shape = shape_of<CollectiveShape>(program_, members.front());
  MoveCall call{.parts = {}, .wire = shape.wire, .link = collective_link(shape, members.size())};
  for (const std::size_t i : outputs) {
    const Stack to = output(members[i]);
    for (std::size_t j = 0; j < members.size(); ++j) {
      const Stack operand = input(members[j], 0);
      const Stack from = cuts(shape.kind) ? part_of(operand, i, members.size()) : operand;
      for (const MoveCall::Part& part : parts_between(from, part_of(to, j, members.size()), shape.wire)) {
        call.parts.push_back(part);
      }
    }
  }
  return call.parts.empty() ? std::vector<Call>{} : std::vector<Call>{std::move(call)};
}

/// All inputs are read before any output is written: sums are computed in scratch and then copied to their places. An
/// all-reduce has a single sum for all members.
std::vector<Call> Calls::summed(std::span<const At> members, std::span<const std::size_t> outputs,
                                Scratch& scratch) const {
  const auto& shape = shape_of<CollectiveShape>(program_, members.front());
  std::vector<Call> calls;
  MoveCall spread{.parts = {}, .wire = DType::fp32, .link = collective_link(shape, members.size())};
  Panel sum;
  for (const std::size_t i : outputs) {
    const Stack to = output(members[i]);
    if (cuts(shape.kind) || i == outputs.front()) {
      sum = packed_like(to, scratch);
      std::vector<Stack> stacks{{sum}};
      for (const At& member : members) {
        const Stack operand = input(member, 0);
        stacks.push_back(cuts(shape.kind) ? part_of(operand, i, members.size()) : operand);
      }
      for (const std::vector<Panel>& piece : rows_in_step(stacks)) {
        calls.emplace_back(FunctionCall{.function = Function::add,
                                        .functions = options_.functions,
                                        .block = piece.front().columns,
                                        .inputs = {piece.begin() + 1, piece.end()},
                                        .out = piece.front(),
                                        .wire = shape.wire});
      }
    }
    spread.wire = sum.dtype;
    for (const MoveCall::Part& part : parts_between({sum}, to, sum.dtype)) {
      spread.parts.push_back(part);
    }
  }
  calls.emplace_back(std::move(spread));
  return calls;
}

void issue(Driver& driver, StreamId stream, const Call& call) {
  struct Issue {
    Driver& driver;
    StreamId stream;
    void operator()(const ProductCall& product) const { driver.product(stream, product); }
    void operator()(const FunctionCall& function) const { driver.function(stream, function); }
    void operator()(const AttentionCall& attention) const { driver.attend(stream, attention); }
    void operator()(const MoveCall& move) const { driver.move(stream, move); }
  };
  std::visit(Issue{driver, stream}, call);
}

}  // namespace commfuse::validate
