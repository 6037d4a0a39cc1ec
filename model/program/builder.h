// SPDX-License-Identifier: Apache-2.0
// The only way to make a Program. Ops wait only for ids given before, so a program is acyclic by construction.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/few.h"
#include "model/program/program.h"

namespace commfuse {

/// Regions stacked by rows.
using Operand = Few<Region>;
/// Ops that must have ended before another is posted.
using Waits = Few<OpId>;

/// How a tensor is the product of two others.
struct ProductSpec {
  bool transpose_a = false;
  bool transpose_b = false;
  std::optional<DType> dtype;  // that of the first factor where it is not given
};

struct GemmSpec {
  Lane lane{LaneKind::compute, 0};
  Operand a, b, out;
  bool accumulate = false;
  Waits waits;
  Purpose purpose = Purpose::essential;
  DType accumulator = DType::fp32;
  std::int32_t kernel_rows = 0;  // block rows of the kernel that this product is a part of; 0: of its own
  bool transpose_a = false;
  bool transpose_b = false;
};

/// Both inputs are rows of one buffer of q, k and v. `positions`: the block row of its sequence that each region of the
/// queries begins at; empty: the queries are block rows 0, 1, 2 and so on.
struct AttentionSpec {
  Lane lane{LaneKind::compute, 0};
  Operand queries, keys, out;
  std::vector<Index> positions;
  DimensionId batch{};
  DimensionId head{};
  bool causal = true;
  Waits waits;
  Purpose purpose = Purpose::essential;
};

struct ElementwiseSpec {
  Lane lane{LaneKind::compute, 0};
  Function function = Function::add;
  std::vector<Operand> inputs;
  Operand out;
  Waits waits;
  Purpose purpose = Purpose::local;
};

/// An empty send or receive means that this half is absent.
struct ExchangeSpec {
  Lane lane{LaneKind::comm, 0};
  int axis = 0;
  std::int32_t shift = 1;
  Operand send, receive;
  DType wire = DType::bf16;
  Protocol protocol = Protocol::rendezvous;
  Waits waits;
};

/// A push of nothing: "I got this far", from every rank to coordinate + shift.
struct CreditSpec {
  Lane lane{LaneKind::comm, 0};
  int axis = 0;
  std::int32_t shift = 1;
  bool sends = true;
  bool receives = true;
  Waits waits;
};

struct CollectiveSpec {
  Lane lane{LaneKind::comm, 0};
  CollectiveKind kind = CollectiveKind::all_gather;
  int axis = 0;
  Operand in, out;
  DType wire = DType::bf16;
  Waits waits;
};

/// Aborts (check) on what only a generator's author can get wrong: empty operands, regions wider than their buffer,
/// operands whose extents do not fit each other, waits for later ops. Throws ConfigError where operands stack more
/// regions than there is memory for.
class ProgramBuilder {
 public:
  ProgramBuilder(std::string name, Mesh mesh);

  [[nodiscard]] const Mesh& mesh() const { return program_.mesh; }

  /// A dimension of that name, cut into `blocks`; asking again for the same name returns the same one and requires
  /// the same blocks.
  DimensionId dimension(std::string_view name, std::int32_t blocks);

  TensorId input_tensor(std::string name, Extent rows, Extent columns, DType dtype);
  /// The unfused product op(a) x op(b); op(a)'s columns and op(b)'s rows have the same extent.
  TensorId product_tensor(std::string name, TensorId a, TensorId b, const ProductSpec& spec = {});
  TensorId function_tensor(std::string name, Function function, TensorId of, TensorId other = no_tensor);
  /// One block of the columns of `of` (q, k and v of some heads) becomes one block of `columns`.
  TensorId attention_tensor(std::string name, TensorId of, Extent columns, bool causal);

  BufferId buffer(std::string name, BufferRole role, Extent rows, Extent columns, DType dtype);
  void initially(const Region& here, TensorId tensor, Index row, Index column);
  void finally(const Region& here, TensorId tensor, Index row, Index column);

  OpId gemm(const GemmSpec& spec);
  /// A product with nothing special about it: out = a x b, on the compute lane.
  OpId product(const Operand& a, const Operand& b, const Operand& out, const Waits& waits);
  OpId attention(const AttentionSpec& spec);
  OpId elementwise(const ElementwiseSpec& spec);
  OpId exchange(const ExchangeSpec& spec);
  OpId credit(const CreditSpec& spec);
  OpId collective(const CollectiveSpec& spec);

  /// The op takes part only where the predicate holds.
  void only_where(OpId op, const Predicate& where) { program_.ops[position(op)].where = where; }

  /// The essential compute of one rank before any cutting.
  void unfused(const Shape& shape);

  [[nodiscard]] const Tensor& tensor(TensorId id) const { return program_.tensors[position(id)]; }
  [[nodiscard]] const Buffer& buffer_of(BufferId id) const { return program_.buffers[position(id)]; }
  /// The whole of a buffer.
  [[nodiscard]] Region whole(BufferId id) const;
  /// `rows` block rows of a buffer from `row`, over all its columns.
  [[nodiscard]] Region rows_of(BufferId id, Index row, std::int32_t rows = 1) const;

  /// About so many ops will come: makes room for them at once.
  void expect(std::int64_t ops);

  [[nodiscard]] Program build() && { return std::move(program_); }

 private:
  /// An operand that lies in the pools.
  struct Placed {
    Slice regions;
    Extent rows, columns;
    DType dtype = DType::bf16;
  };
  Placed place(const Operand& operand);
  /// What goes into a product and comes out.
  struct Factors {
    const Operand& a;
    const Operand& b;
    const Operand& out;
  };
  /// With the operands of `factors`, not those of `how`.
  OpId multiply(const Factors& factors, const Waits& waits, const GemmSpec& how);
  Slice store(const Region& region);
  Slice store(const Operand& operand);
  /// The slices of these operands, one after another.
  Slice store_all(std::initializer_list<const Operand*> operands);
  /// `Of`: one of the kinds of Shape.
  template <class Of>
  std::uint32_t shape_id(const Of& shape);
  std::uint32_t stored_shape_id(const Shape& shape);
  std::uint16_t lane_id(Lane lane);
  [[nodiscard]] std::int32_t wrapped(int axis, std::int32_t shift) const;
  OpId add(const Op& op, Lane lane, std::span<const OpId> waits);
  /// Rows x columns of a stacked operand; all its regions have the same columns and block kinds.
  [[nodiscard]] std::pair<Extent, Extent> extents_of(const Operand& operand) const;
  [[nodiscard]] DType dtype_of(const Operand& operand) const;
  Slice store_positions(const AttentionSpec& spec);

  Program program_;
  std::vector<std::array<Slice, 2>> recent_;  // by buffer: the last two operands of one region, the later one last
  std::unordered_multimap<std::size_t, std::uint32_t> shape_ids_;       // by hash; only looked up, never walked
  std::array<std::uint32_t, std::variant_size_v<Shape>> last_shape_{};  // by kind: the one that was asked for last
};

/// The same, but no two operands share regions: to change one alone.
Program unshared(Program program);

}  // namespace commfuse
