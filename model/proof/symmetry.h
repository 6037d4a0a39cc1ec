// SPDX-License-Identifier: Apache-2.0
// Is a program rotation-symmetric: do all ranks do the same, each seen from its own place? Then rank 0 stands for all.
//
//           rank 0   rank 1   rank 2   rank 3      (FuseAG, ring, step 1, 4 ranks)
//   reads   x[3]     x[0]     x[1]     x[2]        turned by one: every column becomes the next,
//   writes  y[3]     y[0]     y[1]     y[2]        and all together are what they were
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/program/matching.h"
#include "model/program/program.h"
#include "model/proof/rotation.h"

namespace commfuse {

/// The rows and columns of a buffer, a tensor or an operand.
struct Moves {
  Direction rows, columns;
};

/// Whose part of a program is looked at.
enum class Ranks : std::uint8_t {
  all,
  first,  // rank 0, which stands for all ranks of a rotation-symmetric program
};

/// How everything moves when all ranks turn, such that the program comes to itself: on every rank r of the turn, an
/// operand's cells are those of rank 0, each moved as its buffer moves, and they stand in the operand where the
/// operand's rotation puts them; the initial and final labels of cells move as their tensors do; and every op takes
/// operands that move in step to one that does. So what rank r holds is at all times what rank 0 holds, moved.
class Symmetry {
 public:
  [[nodiscard]] const Moves& of(BufferId id) const { return grids_[position(id)]; }
  [[nodiscard]] const Moves& of(TensorId id) const { return grids_[buffers_ + position(id)]; }
  /// What a product sums over.
  [[nodiscard]] const Direction& contraction_of(const Tensor& product) const {
    return product.transpose_a ? of(product.a).rows : of(product.a).columns;
  }

  /// How the rows or the columns of an operand of the program move inside it. Nothing when turning does not only
  /// reorder them.
  [[nodiscard]] std::optional<Rotation> rows_inside(std::span<const Region> operand) const;
  [[nodiscard]] std::optional<Rotation> columns_inside(std::span<const Region> operand) const;

 private:
  class Decision;
  friend std::optional<Symmetry> symmetry_of(const Program& program, const Matching& matching);

  explicit Symmetry(const Program& program);
  [[nodiscard]] const Moves& grid(const Region& region) const { return grids_[position(region.buffer)]; }

  /// Where a row of a stack begins, if no rank changes its place.
  struct Place {
    std::int32_t row = 0;
    std::int32_t column = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  static std::vector<Place> places_of(std::span<const Region> operand);
  /// How the columns of every region move inside it; nothing unless all do so in one way.
  [[nodiscard]] std::optional<Rotation> columns_alike(std::span<const Region> operand) const;
  /// How rows of one buffer that turn into each other move in their stack ("slice i of every shard"), or `across` it
  /// pieces of rows ("own rows, heads of every rank").
  [[nodiscard]] std::optional<Rotation> stacked(std::span<const Region> operand, bool across) const;
  [[nodiscard]] bool stays_together(const Region& region, bool across) const;

  const Program& program_;
  std::size_t buffers_;
  std::vector<Moves> grids_;  // buffers, then tensors
  bool still_ = false;        // nothing moves inside any operand
};

/// Nothing when the program is not rotation-symmetric or it could not be shown: an op with a predicate; an index whose
/// scale or constant does not fit its buffer; operands that move out of step. Keeps a reference to the program.
/// O(regions). Requires a program whose tables and ops passed check_bounds() and which matches.
std::optional<Symmetry> symmetry_of(const Program& program, const Matching& matching);

}  // namespace commfuse
