// SPDX-License-Identifier: Apache-2.0
#include "model/program/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/check.h"
#include "model/config_error.h"

namespace commfuse {

namespace {

/// Returns equal hashes for equal shapes. Uses only fields in which the shapes of one program often differ, such as
/// extents and the shift of an exchange.
std::size_t hash_of(const Shape& shape) {
  struct Numbers {
    std::array<std::int32_t, 4> operator()(const GemmShape& gemm) const {
      return {gemm.m.blocks, gemm.n.blocks, gemm.k.blocks, gemm.accumulate ? 1 : 0};
    }
    std::array<std::int32_t, 4> operator()(const AttentionShape& attention) const {
      return {attention.queries.blocks, attention.keys.blocks, attention.columns.blocks, attention.qkv.blocks};
    }
    std::array<std::int32_t, 4> operator()(const ElementwiseShape& elementwise) const {
      return {elementwise.rows.blocks, elementwise.columns.blocks, elementwise.inputs,
              static_cast<std::int32_t>(elementwise.function)};
    }
    std::array<std::int32_t, 4> operator()(const ExchangeShape& exchange) const {
      return {exchange.rows.blocks, exchange.columns.blocks, exchange.shift, exchange.sends ? 1 : 0};
    }
    std::array<std::int32_t, 4> operator()(const CollectiveShape& collective) const {
      return {collective.rows.blocks, collective.columns.blocks, static_cast<std::int32_t>(collective.kind), 0};
    }
  };
  std::uint64_t hash = 1469598103934665603U + shape.index();  // FNV-1a, one word at a time
  for (const std::int32_t number : std::visit(Numbers{}, shape)) {
    hash = (hash ^ static_cast<std::uint32_t>(number)) * 1099511628211U;
  }
  return static_cast<std::size_t>(hash ^ (hash >> 32U));
}

/// Compares only constants if both positions are the same on all ranks, as most positions are.
inline bool same(const Index& a, const Index& b) {
  return a.constant == b.constant && ((a.fixed() && b.fixed()) || (a.terms[0] == b.terms[0] && a.terms == b.terms));
}
/// Requires `a` and `b` to be regions of one buffer.
inline bool same(const Region& a, const Region& b) {
  return same(a.row, b.row) && a.rows == b.rows && a.columns == b.columns && same(a.column, b.column);
}

void check_fits(const Region& region, const Buffer& buffer) {
  check(region.rows >= 1 && region.rows <= buffer.rows.blocks, "a region is no taller than its buffer");
  check(region.columns >= 1 && region.columns <= buffer.columns.blocks, "a region is no wider than its buffer");
}

/// Returns the rows and columns of op(x).
std::pair<Extent, Extent> oriented(const std::pair<Extent, Extent>& extents, bool transposed) {
  return transposed ? std::pair(extents.second, extents.first) : extents;
}

}  // namespace

ProgramBuilder::ProgramBuilder(std::string name, Mesh mesh) {
  check(!mesh.axes.empty() && mesh.axes.size() <= max_axes, "a mesh has one to three axes");
  program_.name = std::move(name);
  program_.mesh = std::move(mesh);
}

DimensionId ProgramBuilder::dimension(std::string_view name, std::int32_t blocks) {
  check(blocks >= 1, "a dimension has at least one block");
  for (std::size_t i = 0; i < program_.dimensions.size(); ++i) {
    if (program_.dimensions[i].name == name) {
      check(program_.dimensions[i].blocks == blocks, "a dimension is cut in one way");
      return DimensionId{static_cast<std::int32_t>(i)};
    }
  }
  program_.dimensions.push_back({std::string{name}, blocks});
  return DimensionId{static_cast<std::int32_t>(program_.dimensions.size()) - 1};
}

TensorId ProgramBuilder::input_tensor(std::string name, Extent rows, Extent columns, DType dtype) {
  program_.tensors.push_back({.name = std::move(name), .rows = rows, .columns = columns, .dtype = dtype});
  return TensorId{static_cast<std::int32_t>(program_.tensors.size()) - 1};
}

TensorId ProgramBuilder::product_tensor(std::string name, TensorId a, TensorId b, const ProductSpec& spec) {
  const auto [rows, contracted] = oriented({tensor(a).rows, tensor(a).columns}, spec.transpose_a);
  const auto [b_rows, columns] = oriented({tensor(b).rows, tensor(b).columns}, spec.transpose_b);
  check(contracted == b_rows, "a product contracts equal extents");
  program_.tensors.push_back({.name = std::move(name),
                              .rows = rows,
                              .columns = columns,
                              .dtype = spec.dtype.value_or(tensor(a).dtype),
                              .definition = Tensor::Definition::product,
                              .a = a,
                              .b = b,
                              .transpose_a = spec.transpose_a,
                              .transpose_b = spec.transpose_b});
  return TensorId{static_cast<std::int32_t>(program_.tensors.size()) - 1};
}

TensorId ProgramBuilder::function_tensor(std::string name, Function function, TensorId of, TensorId other) {
  Extent columns = tensor(of).columns;
  if (function == Function::swiglu) {
    check(columns.blocks % 2 == 0, "swiglu pairs column blocks");
    columns.blocks /= 2;
  }
  check(function != Function::norm || columns.blocks == 1, "a norm takes whole rows");
  check((function == Function::residual) == (other != no_tensor), "only a residual takes two tensors");
  check(other == no_tensor || (tensor(other).rows == tensor(of).rows && tensor(other).columns == columns),
        "a residual adds tensors of equal extents");
  program_.tensors.push_back({.name = std::move(name),
                              .rows = tensor(of).rows,
                              .columns = columns,
                              .dtype = tensor(of).dtype,
                              .definition = Tensor::Definition::function,
                              .a = of,
                              .b = other,
                              .function = function});
  return TensorId{static_cast<std::int32_t>(program_.tensors.size()) - 1};
}

TensorId ProgramBuilder::attention_tensor(std::string name, TensorId of, Extent columns, bool causal) {
  check(tensor(of).columns.blocks == columns.blocks, "attention has as many column blocks as its input");
  program_.tensors.push_back({.name = std::move(name),
                              .rows = tensor(of).rows,
                              .columns = columns,
                              .dtype = tensor(of).dtype,
                              .definition = Tensor::Definition::attention,
                              .a = of,
                              .causal = causal});
  return TensorId{static_cast<std::int32_t>(program_.tensors.size()) - 1};
}

BufferId ProgramBuilder::buffer(std::string name, BufferRole role, Extent rows, Extent columns, DType dtype) {
  check(rows.blocks >= 1 && columns.blocks >= 1, "a buffer is not empty");
  program_.buffers.push_back({std::move(name), role, rows, columns, dtype});
  recent_.emplace_back();
  return BufferId{static_cast<std::int32_t>(program_.buffers.size()) - 1};
}

void ProgramBuilder::initially(const Region& region, TensorId tensor, Index row, Index column) {
  program_.initial.push_back({region, tensor, row, column});
}

void ProgramBuilder::finally(const Region& region, TensorId tensor, Index row, Index column) {
  program_.final.push_back({region, tensor, row, column});
}

/// The output of an op is often an input of the next ops, so an operand shares the stored region of an equal operand
/// among the last two operands of its buffer.
Slice ProgramBuilder::store(const Region& region) {
  auto& [before, last] = recent_[position(region.buffer)];
  if (last.count == 1 && same(program_.regions[last.first], region)) {
    return last;
  }
  if (before.count == 1 && same(program_.regions[before.first], region)) {
    return before;
  }
  before = std::exchange(last, {static_cast<std::uint32_t>(program_.regions.size()), 1});
  program_.regions.push_back(region);
  return last;
}

/// Stores the regions of an operand in sequence. An operand of one region may share the region of an equal operand.
Slice ProgramBuilder::store(const Operand& operand) {
  if (operand.size() == 1) {
    return store(operand.front());
  }
  constexpr std::size_t max_regions = std::size_t{1} << 21U;  // about 140 MB
  if (program_.regions.size() + operand.size() > max_regions) {
    throw ConfigError(fmt::format("{} on {} ranks needs more than {} buffer regions; choose fewer ranks", program_.name,
                                  program_.mesh.ranks(), max_regions));
  }
  const Slice slice{static_cast<std::uint32_t>(program_.regions.size()), static_cast<std::uint32_t>(operand.size())};
  program_.regions.insert(program_.regions.end(), operand.begin(), operand.end());
  return slice;
}

inline ProgramBuilder::Placed ProgramBuilder::place(const Operand& operand) {
  if (operand.size() == 1) {
    const Region& only = operand.front();
    const Buffer& buffer = buffer_of(only.buffer);
    check_fits(only, buffer);
    return {store(only), {buffer.rows.dimension, only.rows}, {buffer.columns.dimension, only.columns}, buffer.dtype};
  }
  const auto [rows, columns] = extents_of(operand);
  return {store(operand), rows, columns, dtype_of(operand)};
}

inline std::uint16_t ProgramBuilder::lane_id(Lane lane) {
  std::size_t id = 0;
  while (id < program_.lanes.size() && program_.lanes[id] != lane) {
    ++id;
  }
  if (id == program_.lanes.size()) {
    program_.lanes.push_back(lane);
  }
  return static_cast<std::uint16_t>(id);
}

OpId ProgramBuilder::gemm(const GemmSpec& spec) { return multiply({spec.a, spec.b, spec.out}, spec.waits, spec); }

OpId ProgramBuilder::product(const Operand& a, const Operand& b, const Operand& out, const Waits& waits) {
  static const GemmSpec plain;
  return multiply({a, b, out}, waits, plain);
}

OpId ProgramBuilder::multiply(const Factors& factors, const Waits& waits, const GemmSpec& spec) {
  const Placed a = place(factors.a);
  const Placed b = place(factors.b);
  const Placed out = place(factors.out);
  const auto [m, k] = oriented({a.rows, a.columns}, spec.transpose_a);
  const auto [b_rows, n] = oriented({b.rows, b.columns}, spec.transpose_b);
  check(b_rows == k, "the rows of b are the columns of a");
  check(out.rows == m && out.columns == n, "the output of a product is a's rows by b's columns");
  check(spec.kernel_rows % m.blocks == 0 && spec.kernel_columns % n.blocks == 0, "a kernel has equal parts");
  check(spec.kernel_rows == 0 || spec.kernel_columns == 0, "a kernel is cut by rows or by columns, not by both");
  const DType dtype = b.dtype == DType::fp8 ? b.dtype : a.dtype;
  const GemmShape shape{.m = m,
                        .n = n,
                        .k = k,
                        .accumulate = spec.accumulate,
                        .dtype = dtype,
                        .accumulator = spec.accumulator,
                        .kernel_m = spec.kernel_rows == 0 ? Extent{} : Extent{m.dimension, spec.kernel_rows},
                        .kernel_n = spec.kernel_columns == 0 ? Extent{} : Extent{n.dimension, spec.kernel_columns},
                        .transpose_a = spec.transpose_a,
                        .transpose_b = spec.transpose_b,
                        .out = out.dtype == dtype ? std::nullopt : std::optional(out.dtype)};
  const auto first = static_cast<std::uint32_t>(program_.operands.size());
  program_.operands.insert(program_.operands.end(), {a.regions, b.regions, out.regions});
  return add({.kind = OpKind::gemm,
              .purpose = spec.purpose,
              .shape = shape_id(shape),
              .inputs = {first, 2},
              .outputs = {first + 2, 1}},
             spec.lane, waits);
}

OpId ProgramBuilder::attention(const AttentionSpec& spec) {
  const auto [queries, qkv] = extents_of(spec.queries);
  const auto [keys, key_columns] = extents_of(spec.keys);
  const auto [out_rows, columns] = extents_of(spec.out);
  check(qkv == key_columns && out_rows == queries && columns.blocks == qkv.blocks,
        "attention keeps the rows of its queries and the blocks of its columns");
  const AttentionShape shape{.queries = queries,
                             .keys = keys,
                             .columns = columns,
                             .qkv = qkv,
                             .batch = spec.batch,
                             .head = spec.head,
                             .causal = spec.causal,
                             .dtype = dtype_of(spec.out)};
  return add({.kind = OpKind::attention,
              .purpose = spec.purpose,
              .shape = shape_id(shape),
              .inputs = store_all({&spec.queries, &spec.keys}),
              .outputs = store_all({&spec.out}),
              .positions = store_positions(spec)},
             spec.lane, spec.waits);
}

/// Does not store the default positions, so that they have only one representation.
Slice ProgramBuilder::store_positions(const AttentionSpec& spec) {
  check(spec.positions.empty() || spec.positions.size() == spec.queries.size(),
        "each region of queries has a position");
  std::int32_t above = 0;
  bool is_default = true;
  for (std::size_t i = 0; i < spec.positions.size(); ++i) {
    is_default = is_default && spec.positions[i] == Index{above};
    above += spec.queries[i].rows;
  }
  if (is_default) {
    return {};
  }
  const Slice slice{static_cast<std::uint32_t>(program_.positions.size()),
                    static_cast<std::uint32_t>(spec.positions.size())};
  program_.positions.insert(program_.positions.end(), spec.positions.begin(), spec.positions.end());
  return slice;
}

OpId ProgramBuilder::elementwise(const ElementwiseSpec& spec) {
  check(spec.inputs.empty() == (spec.function == Function::zero), "an elementwise op other than zero has an input");
  const auto [rows, columns] = extents_of(spec.out);
  Extent expected = columns;
  if (spec.function == Function::swiglu) {
    expected.blocks *= 2;
  }
  for (const Operand& input : spec.inputs) {
    check(extents_of(input) == std::pair(rows, expected), "the inputs of an elementwise op fit its output");
  }
  check(spec.function == Function::add || spec.inputs.size() == inputs_of(spec.function),
        "an add takes any number of inputs, a residual two, a zero none, other functions one");
  const ElementwiseShape shape{.function = spec.function,
                               .inputs = static_cast<std::int32_t>(spec.inputs.size()),
                               .rows = rows,
                               .columns = columns,
                               .dtype = dtype_of(spec.out)};
  Slice inputs = store_all({});
  for (const Operand& input : spec.inputs) {
    inputs.count += store_all({&input}).count;
  }
  return add({.kind = OpKind::elementwise,
              .purpose = spec.purpose,
              .shape = shape_id(shape),
              .inputs = inputs,
              .outputs = store_all({&spec.out})},
             spec.lane, spec.waits);
}

OpId ProgramBuilder::exchange(const ExchangeSpec& spec) {
  check(!spec.send.empty() || !spec.receive.empty(), "an exchange sends or receives");
  const bool sends = !spec.send.empty();
  const bool receives = !spec.receive.empty();
  const auto first = static_cast<std::uint32_t>(program_.operands.size());
  Placed carried;
  if (sends) {
    carried = place(spec.send);
    program_.operands.push_back(carried.regions);
  }
  if (receives) {
    const Placed taken = place(spec.receive);
    program_.operands.push_back(taken.regions);
    check(!sends || (taken.rows == carried.rows && taken.columns == carried.columns),
          "both halves of an exchange carry the same extents");
    carried = taken;
  }
  const ExchangeShape shape{.axis = static_cast<std::int8_t>(spec.axis),
                            .sends = sends,
                            .receives = receives,
                            .protocol = spec.protocol,
                            .shift = wrapped(spec.axis, spec.shift),
                            .rows = carried.rows,
                            .columns = carried.columns,
                            .wire = spec.wire};
  return add({.kind = OpKind::exchange,
              .purpose = Purpose::communication,
              .shape = shape_id(shape),
              .inputs = {first, sends ? 1U : 0U},
              .outputs = {first + (sends ? 1 : 0), receives ? 1U : 0U}},
             spec.lane, spec.waits);
}

std::int32_t ProgramBuilder::wrapped(int axis, std::int32_t shift) const {
  return commfuse::wrapped(shift, mesh().axes[static_cast<std::size_t>(axis)].extent);
}

OpId ProgramBuilder::credit(const CreditSpec& spec) {
  check(spec.sends || spec.receives, "a credit is sent or received");
  const ExchangeShape shape{.axis = static_cast<std::int8_t>(spec.axis),
                            .sends = spec.sends,
                            .receives = spec.receives,
                            .protocol = Protocol::push,
                            .shift = wrapped(spec.axis, spec.shift),
                            .rows = {},
                            .columns = {}};
  return add({.kind = OpKind::exchange,
              .purpose = Purpose::communication,
              .shape = shape_id(shape),
              .inputs = store_all({}),
              .outputs = store_all({})},
             spec.lane, spec.waits);
}

OpId ProgramBuilder::collective(const CollectiveSpec& spec) {
  const auto [in_rows, in_columns] = extents_of(spec.in);
  const auto [out_rows, out_columns] = extents_of(spec.out);
  const std::int32_t ranks = mesh().axes[static_cast<std::size_t>(spec.axis)].extent;
  check(in_columns == out_columns, "a collective keeps the columns");
  const auto times_ranks = [&](Extent extent) { return Extent{extent.dimension, ranks * extent.blocks}; };
  if (spec.kind == CollectiveKind::all_gather) {
    check(out_rows == times_ranks(in_rows), "an all-gather puts out ranks times its input");
  } else if (spec.kind == CollectiveKind::reduce_scatter) {
    check(in_rows == times_ranks(out_rows), "a reduce-scatter takes in ranks times its output");
  } else {
    check(in_rows == out_rows, "this collective keeps the rows");
  }
  const CollectiveShape shape{.kind = spec.kind,
                              .axis = static_cast<std::int8_t>(spec.axis),
                              .rows = in_rows.blocks > out_rows.blocks ? in_rows : out_rows,
                              .columns = in_columns,
                              .wire = spec.wire};
  return add({.kind = OpKind::collective,
              .purpose = Purpose::communication,
              .shape = shape_id(shape),
              .inputs = store_all({&spec.in}),
              .outputs = store_all({&spec.out})},
             spec.lane, spec.waits);
}

void ProgramBuilder::unfused(const Shape& shape) {
  const auto* gemm = std::get_if<GemmShape>(&shape);
  check(gemm == nullptr || !is_part_of_kernel(*gemm), "an unfused GEMM is not part of a larger kernel");
  program_.unfused.push_back(shape);
}

void ProgramBuilder::reserve_ops(std::int64_t ops) {
  const auto count = static_cast<std::size_t>(ops);
  const auto grow = [](auto& pool, std::size_t more) { pool.reserve(pool.size() + more); };
  grow(program_.ops, count);
  grow(program_.waits, count);
  grow(program_.operands, 5 * count / 2);
  grow(program_.regions, 3 * count / 2);
}

Region ProgramBuilder::whole(BufferId id) const {
  const Buffer& buffer = buffer_of(id);
  return {id, 0, 0, buffer.rows.blocks, buffer.columns.blocks};
}

Region ProgramBuilder::rows_of(BufferId id, Index row, std::int32_t rows) const {
  return {id, row, 0, rows, buffer_of(id).columns.blocks};
}

Region ProgramBuilder::column_of(BufferId id, Index column) const {
  return {id, 0, column, buffer_of(id).rows.blocks, 1};
}

Slice ProgramBuilder::store_all(std::initializer_list<const Operand*> operands) {
  const Slice slice{static_cast<std::uint32_t>(program_.operands.size()), static_cast<std::uint32_t>(operands.size())};
  for (const Operand* operand : operands) {
    program_.operands.push_back(store(*operand));
  }
  return slice;
}

/// Compares with the last shape first, because most ops repeat it.
template <class Kind>
std::uint32_t ProgramBuilder::shape_id(const Kind& shape) {
  constexpr std::size_t kind = Shape(std::in_place_type<Kind>).index();
  const std::uint32_t last = last_shape_[kind];
  const Kind* known = last < program_.shapes.size() ? std::get_if<Kind>(&program_.shapes[last]) : nullptr;
  return known != nullptr && *known == shape ? last : stored_shape_id(shape);
}

std::uint32_t ProgramBuilder::stored_shape_id(const Shape& shape) {
  std::uint32_t& last = last_shape_[shape.index()];
  const std::size_t hash = hash_of(shape);
  for (auto [same, end] = shape_ids_.equal_range(hash); same != end; ++same) {
    if (program_.shapes[same->second] == shape) {
      return last = same->second;
    }
  }
  const auto id = static_cast<std::uint32_t>(program_.shapes.size());
  program_.shapes.push_back(shape);
  shape_ids_.emplace(hash, id);
  return last = id;
}

/// Fills in the lane and the waits.
OpId ProgramBuilder::add(const Op& op, Lane lane, std::span<const OpId> waits) {
  const OpId id{static_cast<std::int32_t>(program_.ops.size())};
  Op& added = program_.ops.emplace_back(op);
  added.lane = lane_id(lane);
  added.waits = {static_cast<std::uint32_t>(program_.waits.size()), static_cast<std::uint32_t>(waits.size())};
  for (const OpId wait : waits) {
    check(wait >= OpId{0} && wait < id, "an op waits only for ops added before it");
    program_.waits.push_back(wait);
  }
  return id;
}

std::pair<Extent, Extent> ProgramBuilder::extents_of(const Operand& operand) const {
  check(!operand.empty(), "an operand has at least one region");
  const Buffer& first = buffer_of(operand.front().buffer);
  if (operand.size() == 1) {
    const Region& only = operand.front();
    check_fits(only, first);
    return {{first.rows.dimension, only.rows}, {first.columns.dimension, only.columns}};
  }
  Extent rows{first.rows.dimension, 0};
  const Extent columns{first.columns.dimension, operand.front().columns};
  for (const Region& region : operand) {
    const Buffer& buffer = buffer_of(region.buffer);
    check_fits(region, buffer);
    check(buffer.rows.dimension == rows.dimension && buffer.columns.dimension == columns.dimension &&
              region.columns == columns.blocks,
          "the regions of an operand stack by rows");
    rows.blocks += region.rows;
  }
  return {rows, columns};
}

DType ProgramBuilder::dtype_of(const Operand& operand) const { return buffer_of(operand.front().buffer).dtype; }

Program unshared(Program program) {
  std::vector<Region> regions;
  for (Slice& operand : program.operands) {
    const auto shared = program.regions_of(operand);
    operand.first = static_cast<std::uint32_t>(regions.size());
    regions.insert(regions.end(), shared.begin(), shared.end());
  }
  program.regions = std::move(regions);
  return program;
}

}  // namespace commfuse
