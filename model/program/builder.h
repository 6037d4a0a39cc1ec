// SPDX-License-Identifier: Apache-2.0
// The only way to make a Program. An op can wait only for ops with earlier ids, so a program is acyclic by
// construction.
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
/// Ops that must have completed before another op is posted.
using Waits = Few<OpId>;

/// Definition of a tensor as the matrix product of two other tensors.
struct ProductSpec {
  bool transpose_a = false;
  bool transpose_b = false;
  std::optional<DType> dtype;  // the first factor's dtype if not given
};

struct GemmSpec {
  Lane lane{LaneKind::compute, 0};
  Operand a, b, out;
  bool accumulate = false;
  Waits waits;
  Purpose purpose = Purpose::essential;
  DType accumulator = DType::fp32;
  // Block rows, or block columns, of the kernel of which this GEMM is a part; both 0: its own kernel.
  std::int32_t kernel_rows = 0;
  std::int32_t kernel_columns = 0;
  bool transpose_a = false;
  bool transpose_b = false;
};

/// Queries and keys are rows of one buffer, which holds q, k and v. `positions` holds the block row of the sequence at
/// which each region of the queries begins; empty: the queries are block rows 0, 1, 2 and so on.
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

/// An empty send or receive means that its half of the exchange is absent.
struct ExchangeSpec {
  Lane lane{LaneKind::comm, 0};
  int axis = 0;
  std::int32_t shift = 1;
  Operand send, receive;
  DType wire = DType::bf16;
  Protocol protocol = Protocol::rendezvous;
  Waits waits;
};

/// A push without data from every rank to coordinate + shift, which signals the progress of the source to the target.
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

/// Aborts (check) on mistakes that only the author of a generator can make: empty operands, regions wider than their
/// buffer, operands with incompatible extents, waits for later ops. Throws ConfigError when a program with stacked
/// operands needs more than 2^21 regions.
class ProgramBuilder {
 public:
  ProgramBuilder(std::string name, Mesh mesh);

  [[nodiscard]] const Mesh& mesh() const { return program_.mesh; }

  /// Returns a dimension of that name, cut into `blocks`. A second call with the same name returns the same dimension
  /// and requires the same number of blocks.
  DimensionId dimension(std::string_view name, std::int32_t blocks);

  TensorId input_tensor(std::string name, Extent rows, Extent columns, DType dtype);
  /// Adds a tensor defined as op(a) x op(b); op(a)'s columns and op(b)'s rows have the same extent.
  TensorId product_tensor(std::string name, TensorId a, TensorId b, const ProductSpec& spec = {});
  TensorId function_tensor(std::string name, Function function, TensorId of, TensorId other = no_tensor);
  /// Adds a tensor defined as an attention over `of`: each block of the columns of `of` (q, k and v of some heads)
  /// becomes one block of `columns`.
  TensorId attention_tensor(std::string name, TensorId of, Extent columns, bool causal);

  BufferId buffer(std::string name, BufferRole role, Extent rows, Extent columns, DType dtype);
  void initially(const Region& region, TensorId tensor, Index row, Index column);
  void finally(const Region& region, TensorId tensor, Index row, Index column);

  OpId gemm(const GemmSpec& spec);
  /// Adds a plain GEMM on the compute lane: out = a x b.
  OpId product(const Operand& a, const Operand& b, const Operand& out, const Waits& waits);
  OpId attention(const AttentionSpec& spec);
  OpId elementwise(const ElementwiseSpec& spec);
  OpId exchange(const ExchangeSpec& spec);
  OpId credit(const CreditSpec& spec);
  OpId collective(const CollectiveSpec& spec);

  /// Limits the op to the ranks for which the predicate is true.
  void only_where(OpId op, const Predicate& where) { program_.ops[position(op)].where = where; }

  /// Adds one op to the unsliced essential compute of a rank.
  void unfused(const Shape& shape);

  [[nodiscard]] const Tensor& tensor(TensorId id) const { return program_.tensors[position(id)]; }
  [[nodiscard]] const Buffer& buffer_of(BufferId id) const { return program_.buffers[position(id)]; }
  /// Returns a buffer as one region.
  [[nodiscard]] Region whole(BufferId id) const;
  /// Returns `rows` block rows of a buffer starting at `row`, over all its columns.
  [[nodiscard]] Region rows_of(BufferId id, Index row, std::int32_t rows = 1) const;
  /// Returns one block column of a buffer, over all its rows.
  [[nodiscard]] Region column_of(BufferId id, Index column) const;

  /// Reserves memory for about this many ops.
  void reserve_ops(std::int64_t ops);

  [[nodiscard]] Program build() && { return std::move(program_); }

 private:
  /// An operand that is stored in the pools.
  struct Placed {
    Slice regions;
    Extent rows, columns;
    DType dtype = DType::bf16;
  };
  Placed place(const Operand& operand);
  /// Inputs and output of a GEMM.
  struct Factors {
    const Operand& a;
    const Operand& b;
    const Operand& out;
  };
  /// Adds a GEMM with the operands of `factors`, not the operands of `spec`.
  OpId multiply(const Factors& factors, const Waits& waits, const GemmSpec& spec);
  Slice store(const Region& region);
  Slice store(const Operand& operand);
  /// Stores the operands and returns their slices, one after another.
  Slice store_all(std::initializer_list<const Operand*> operands);
  /// Returns the id of a shape, adding it if it is new. `Kind` is one of the alternatives of Shape.
  template <class Kind>
  std::uint32_t shape_id(const Kind& shape);
  std::uint32_t stored_shape_id(const Shape& shape);
  std::uint16_t lane_id(Lane lane);
  [[nodiscard]] std::int32_t wrapped(int axis, std::int32_t shift) const;
  OpId add(const Op& op, Lane lane, std::span<const OpId> waits);
  /// Returns rows x columns of a stacked operand; all its regions must have the same dimensions and the same number of
  /// columns.
  [[nodiscard]] std::pair<Extent, Extent> extents_of(const Operand& operand) const;
  [[nodiscard]] DType dtype_of(const Operand& operand) const;
  Slice store_positions(const AttentionSpec& spec);

  Program program_;
  std::vector<std::array<Slice, 2>> recent_;  // for each buffer, its last two operands with one region, in order
  std::unordered_multimap<std::size_t, std::uint32_t> shape_ids_;       // by hash; only looked up, never iterated
  std::array<std::uint32_t, std::variant_size_v<Shape>> last_shape_{};  // for each kind, the last shape requested
};

/// Returns the program with no region shared between operands, so that one operand can be changed without others.
Program unshared(Program program);

}  // namespace commfuse
