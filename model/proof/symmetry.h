// SPDX-License-Identifier: Apache-2.0
// Rotation symmetry of a program: all ranks do the same relative to their own position, so rank 0 represents all ranks.
//
//           rank 0   rank 1   rank 2   rank 3      (FuseAG, ring, step 1, 4 ranks)
//   reads   x[3]     x[0]     x[1]     x[2]        turned by one: every column becomes the next one,
//   writes  y[3]     y[0]     y[1]     y[2]        and the whole table stays the same
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/program/matching.h"
#include "model/program/program.h"
#include "model/proof/rotation.h"

namespace commfuse {

/// Movement of the rows and columns of a buffer, a tensor or an operand.
struct Moves {
  Direction rows, columns;
};

/// Ranks whose part of a program is checked.
enum class Ranks : std::uint8_t {
  all,
  first,  // rank 0, which represents all ranks of a rotation-symmetric program
};

/// Movement of buffers, tensors and operands when all ranks turn, such that the program is mapped to itself. Let r be
/// the rank to which a turn moves rank 0:
/// - the cells of an operand on rank r are its cells on rank 0, each moved as its buffer moves, and their places in the
///   operand follow the operand's rotation;
/// - the initial and final labels of cells (the blocks of tensors that they hold) move as the tensors do;
/// - in every op, the operands that it reads move in step with the operands that it writes.
/// So the contents of rank r are at all times the contents of rank 0, moved.
class Symmetry {
 public:
  [[nodiscard]] const Moves& of(BufferId id) const { return grids_[position(id)]; }
  [[nodiscard]] const Moves& of(TensorId id) const { return grids_[buffers_ + position(id)]; }
  /// Returns the direction over which a GEMM sums.
  [[nodiscard]] const Direction& contraction_of(const Tensor& product) const {
    return product.transpose_a ? of(product.a).rows : of(product.a).columns;
  }

  /// Returns how the rows or the columns of an operand of the program move inside it; nullopt if turning does more than
  /// reorder them.
  [[nodiscard]] std::optional<Rotation> rows_inside(std::span<const Region> operand) const;
  [[nodiscard]] std::optional<Rotation> columns_inside(std::span<const Region> operand) const;

 private:
  class Decision;
  friend std::optional<Symmetry> symmetry_of(const Program& program, const Matching& matching);

  explicit Symmetry(const Program& program);
  [[nodiscard]] const Moves& grid(const Region& region) const { return grids_[position(region.buffer)]; }

  /// Row and column at which a part of a stack begins, if its place is the same on all ranks.
  struct Place {
    std::int32_t row = 0;
    std::int32_t column = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  static std::vector<Place> places_of(std::span<const Region> operand);
  /// Returns how the columns of every region move inside it; nullopt unless all move in the same way.
  [[nodiscard]] std::optional<Rotation> common_column_rotation(std::span<const Region> operand) const;
  /// Returns how rows of one buffer that turn into each other move in their stack ("slice i of every shard"), or with
  /// `across` how pieces of rows move ("own rows, heads of every rank").
  [[nodiscard]] std::optional<Rotation> stacked(std::span<const Region> operand, bool across) const;
  [[nodiscard]] bool stays_together(const Region& region, bool across) const;

  const Program& program_;
  std::size_t buffers_;
  std::vector<Moves> grids_;  // buffers, then tensors
  bool still_ = false;        // nothing moves inside any operand
};

/// Returns nullopt if the program is not rotation-symmetric or the proof fails: an op with a predicate; an index whose
/// scale or constant does not fit its buffer; operands that move out of step. `program` must outlive the result. Takes
/// O(regions) time. Requires `program` to have passed check_references(), and `matching` to have no problems.
std::optional<Symmetry> symmetry_of(const Program& program, const Matching& matching);

}  // namespace commfuse
