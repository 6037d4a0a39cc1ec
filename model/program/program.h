// SPDX-License-Identifier: Apache-2.0
// The Program: one schedule as plain data, written once for all ranks. Generators make it, check_program() proves it,
// and one lowering passes it to simulators and executors, which do not depend on the generator.
//
// Positions and extents are whole blocks of named dimensions, not elements: the structure of a schedule is built,
// checked and digested once, and a point adds only the number of elements per block (Sizes).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "model/dtype.h"
#include "model/program/index.h"
#include "model/program/mesh.h"

namespace commfuse {

enum class DimensionId : std::int32_t {};
enum class TensorId : std::int32_t {};
enum class BufferId : std::int32_t {};
enum class OpId : std::int32_t {};
inline constexpr TensorId no_tensor{-1};

template <class Id>
constexpr std::size_t position(Id id) {
  return static_cast<std::size_t>(id);
}

/// A named quantity of the problem (tokens, hidden, ffn) that the schedule cuts into `blocks` equal parts.
struct Dimension {
  std::string name;
  std::int32_t blocks = 1;
  friend bool operator==(const Dimension&, const Dimension&) = default;
};

/// A number of blocks of a dimension.
struct Extent {
  DimensionId dimension{};
  std::int32_t blocks = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};

enum class Function : std::uint8_t {
  add,       // sum of all inputs; adds up partial results
  copy,      // one input, unchanged
  swiglu,    // columns are pairs of blocks (gate, up): silu(gate) * up
  gelu,      // element by element
  norm,      // root-mean-square norm of every row; a row's columns are one block
  residual,  // sum of two tensors, element by element
  zero,      // no input: the empty sum, to which partial results are added; defines no tensor
};

/// Returns the number of inputs of an op with this function; an add has any number.
constexpr std::size_t inputs_of(Function function) {
  return function == Function::residual ? 2 : function == Function::zero ? 0 : 1;
}

/// A whole tensor of the unfused operation, as if one rank held all of it. check_program() proves that a program
/// computes what the definition states.
struct Tensor {
  enum class Definition : std::uint8_t { input, product, function, attention };
  std::string name;
  Extent rows;
  Extent columns;
  DType dtype = DType::bf16;
  Definition definition = Definition::input;
  TensorId a = no_tensor;  // product: op(a) x op(b); function of a; attention over a, whose columns hold q, k and v
  TensorId b = no_tensor;  // product; function residual: a + b
  Function function = Function::copy;
  bool causal = false;       // attention
  bool transpose_a = false;  // product: op(a) is a transposed
  bool transpose_b = false;  // product: op(b) is b transposed
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// Returns the extent over which the product of `a` and another tensor sums; its number of blocks is the number of
/// contributions to a block of the product.
constexpr Extent contraction_of(const Tensor& product, const Tensor& a) {
  return product.transpose_a ? a.rows : a.columns;
}

enum class BufferRole : std::uint8_t { input, weight, output, scratch };

/// Memory that every rank has.
struct Buffer {
  std::string name;
  BufferRole role = BufferRole::scratch;
  Extent rows;
  Extent columns;
  DType dtype = DType::bf16;
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

/// A rectangle of a buffer, in blocks.
struct Region {
  BufferId buffer{};
  Index row;
  Index column;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  friend bool operator==(const Region&, const Region&) = default;
};

/// Content that a region has before the first op (initial) or must have after the last (final): the tensor's rectangle
/// of the same extents that begins at (row, column).
struct Content {
  Region here;
  TensorId tensor{};
  Index row;
  Index column;
  friend bool operator==(const Content&, const Content&) = default;
};

/// Kind of a lane: an in-order queue on a rank. Every rank also has a `host` lane, which is not listed in
/// Program::lanes: it issues the ops in program order, one issue cost after another.
enum class LaneKind : std::uint8_t {
  compute,
  aux,     // small kernels
  comm,    // communication by SMs
  copy,    // copy engines: exchanges on it hold no SMs
  kernel,  // data that a running GEMM kernel moves and sums itself; a bound: no launch, no latency, no SMs
};
struct Lane {
  LaneKind kind = LaneKind::compute;
  std::uint16_t number = 0;
  friend bool operator==(const Lane&, const Lane&) = default;
};

/// Purpose of an op; determines how its time is counted.
enum class Purpose : std::uint8_t {
  essential,      // compute of the unfused operator, however sliced
  local,          // made by the strategy: adds, packs, shuffles, copies
  communication,  // exchanges and collectives
};

enum class OpKind : std::uint8_t { gemm, attention, elementwise, exchange, collective };

/// out (m x n) = or += op(a) (m x k) x op(b) (k x n). A transposed factor is stored in memory as k x m (a) or n x k
/// (b). The GEMM may be one of several equal parts, consecutive in program order, of one kernel of `kernel_m` rows or
/// `kernel_n` columns: then it takes its share of that kernel's time, and only the first part is launched.
struct GemmShape {
  Extent m, n, k;
  bool accumulate = false;
  DType dtype = DType::bf16;  // dtype in which the factors are multiplied: fp8 if one is fp8, otherwise a's
  DType accumulator = DType::fp32;
  Extent kernel_m;  // a multiple of m; 0 blocks: the kernel has m rows
  Extent kernel_n;  // a multiple of n; 0 blocks: the kernel has n columns; a kernel is cut in one direction at most
  bool transpose_a = false;
  bool transpose_b = false;
  std::optional<DType> out;  // dtype of the output, if it differs from the factors: fp32 gradients
  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

/// Blocks of a part and of its whole kernel, in the direction in which the kernel is cut.
struct KernelCut {
  std::int32_t part = 0;
  std::int32_t whole = 0;
};

/// Returns how the kernel of this GEMM is cut; no blocks if the GEMM is a separate kernel.
constexpr KernelCut kernel_cut_of(const GemmShape& gemm) {
  if (gemm.kernel_n.blocks > 0) {
    return {gemm.n.blocks, gemm.kernel_n.blocks};
  }
  return gemm.kernel_m.blocks > 0 ? KernelCut{gemm.m.blocks, gemm.kernel_m.blocks} : KernelCut{};
}

/// Returns true if the GEMM is a part of a larger kernel.
constexpr bool is_part_of_kernel(const GemmShape& gemm) { return kernel_cut_of(gemm).whole > 0; }

/// softmax(q k^T / sqrt(head)) v for `queries` rows against `keys` rows. One block of `qkv` columns holds the q, k and
/// v of a rank's heads and becomes one block of `columns`. Rows are tokens, sequence-major: row = position * batch +
/// sequence, where `batch` and `head` are dimensions of one block that hold the number of sequences and the size of a
/// head. The keys are block rows 0, 1, 2 and so on of the sequence; Op::positions contains the positions of the
/// queries, and under a causal mask a query sees the keys up to its own position.
struct AttentionShape {
  Extent queries, keys, columns, qkv;
  DimensionId batch{};
  DimensionId head{};
  bool causal = false;
  DType dtype = DType::bf16;
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

/// Reads `inputs` rectangles of rows x columns and writes one (swiglu: the input has twice as many columns).
struct ElementwiseShape {
  Function function = Function::add;
  std::int32_t inputs = 1;
  Extent rows, columns;
  DType dtype = DType::bf16;
  friend bool operator==(const ElementwiseShape&, const ElementwiseShape&) = default;
};

/// Ends of an exchange that must be posted before data move.
enum class Protocol : std::uint8_t {
  rendezvous,  // both ends: each half starts when both are posted, and both ops last until it ends
  push,        // the sender: writes to the receiver's memory as soon as it is posted; the receive waits for the data
  pull,        // both ends; the sender only signals that its data are ready and continues, the receiver fetches them
};

/// Sends to coordinate + shift, receives from coordinate - shift, along one axis; either half may be absent.
struct ExchangeShape {
  std::int8_t axis = 0;
  bool sends = true;
  bool receives = true;
  Protocol protocol = Protocol::rendezvous;
  std::int32_t shift = 1;  // inside [0, extent)
  Extent rows, columns;    // size of one half; no blocks: a credit
  DType wire = DType::bf16;
  friend bool operator==(const ExchangeShape&, const ExchangeShape&) = default;
};

/// Returns true for a push without data, which signals the progress of the source to the target, for example that
/// memory may be written or read.
constexpr bool is_credit(const ExchangeShape& exchange) { return exchange.rows.blocks == 0; }

enum class CollectiveKind : std::uint8_t { all_gather, reduce_scatter, all_reduce, all_to_all };

/// A collective over the ranks that differ only in their coordinate on `axis`. rows x columns is the size of the larger
/// of input and output.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::all_gather;
  std::int8_t axis = 0;
  Extent rows, columns;
  DType wire = DType::bf16;
  friend bool operator==(const CollectiveShape&, const CollectiveShape&) = default;
};

/// Inputs to the price of an op; ops of one shape cost the same (under a causal mask the positions matter too).
using Shape = std::variant<GemmShape, AttentionShape, ElementwiseShape, ExchangeShape, CollectiveShape>;

/// A range in one of the program's pools.
struct Slice {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  friend bool operator==(const Slice&, const Slice&) = default;
};

/// A flat record; its lists are in the program's pools. Inputs by kind: gemm a, b; elementwise its inputs; exchange the
/// sent data; collective its input; attention the rows of the queries and the rows of the keys, both in the buffer of
/// q, k and v. Outputs: one operand (an exchange that only sends has none). A credit has neither.
struct Op {
  OpKind kind = OpKind::gemm;
  Purpose purpose = Purpose::essential;
  std::uint16_t lane = 0;   // index into Program::lanes
  std::uint32_t shape = 0;  // index into Program::shapes
  Slice waits;              // range of Program::waits: earlier ops of the same rank
  Slice inputs;             // range of Program::operands
  Slice outputs;            // range of Program::operands
  // Range of Program::positions: for an attention one per region of queries, or none; see positions_of.
  Slice positions;
  Predicate where;
  friend bool operator==(const Op&, const Op&) = default;
};

struct Program {
  std::string name;
  Mesh mesh;
  std::vector<Dimension> dimensions;
  std::vector<Tensor> tensors;
  std::vector<Buffer> buffers;
  std::vector<Content> initial;
  std::vector<Content> final;
  std::vector<Lane> lanes;
  std::vector<Op> ops;
  std::vector<Shape> shapes;
  std::vector<Shape> unfused;  // essential compute of one rank, unsliced, from which `compute` is priced

  std::vector<OpId> waits;       // pool
  std::vector<Slice> operands;   // pool: each operand is a range of regions, stacked by rows
  std::vector<Region> regions;   // pool; operands may share them
  std::vector<Index> positions;  // pool: block rows of a sequence

  [[nodiscard]] std::span<const OpId> waits_of(const Op& op) const {
    return std::span(waits).subspan(op.waits.first, op.waits.count);
  }
  [[nodiscard]] std::span<const Slice> inputs_of(const Op& op) const {
    return std::span(operands).subspan(op.inputs.first, op.inputs.count);
  }
  [[nodiscard]] std::span<const Slice> outputs_of(const Op& op) const {
    return std::span(operands).subspan(op.outputs.first, op.outputs.count);
  }
  /// Returns the block row of its sequence at which each region of an attention's queries begins. An empty list means
  /// the usual case: the queries are block rows 0, 1, 2 and so on.
  [[nodiscard]] std::span<const Index> positions_of(const Op& op) const {
    return std::span(positions).subspan(op.positions.first, op.positions.count);
  }
  /// Returns the regions of one operand, top to bottom.
  [[nodiscard]] std::span<const Region> regions_of(Slice operand) const {
    return std::span(regions).subspan(operand.first, operand.count);
  }

  friend bool operator==(const Program&, const Program&) = default;
};

/// Returns the shape of an exchange; null for other ops.
inline const ExchangeShape* exchange_of(const Program& program, const Op& op) {
  return std::get_if<ExchangeShape>(&program.shapes[op.shape]);
}

/// Returns true if no op has a predicate, so all ranks run the same ops. Otherwise the program is not symmetric, and
/// its matching has an entry for every rank and op.
inline bool same_on_all_ranks(const Program& program) {
  for (const Op& op : program.ops) {
    if (op.where.relation != Relation::always) {
      return false;
    }
  }
  return true;
}

}  // namespace commfuse
