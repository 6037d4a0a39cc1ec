// SPDX-License-Identifier: Apache-2.0
// What the cost model is asked for an op, in its own sizes: which fit answers, and whether it saw such sizes.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "model/hardware/machine.h"
#include "model/program/program.h"
#include "model/program/sizes.h"

namespace commfuse {

enum class PricedKind : std::uint8_t {
  product,
  attention,
  memory_bound,
  exchange,
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all
};

/// "product", "all-gather".
std::string_view name_of(PricedKind kind);

struct PricedShape {
  PricedKind kind = PricedKind::product;
  DType dtype = DType::bf16;  ///< Of a product or an attention; of others bf16, whatever they move.
  /// By FitSize; 0 where the kind has no such size. An attention has its query rows as m, its heads as n, the width of
  /// one as k, and the bytes of its keys and values.
  std::array<std::int64_t, all_fit_sizes.size()> size{};
  auto operator<=>(const PricedShape&) const = default;
};

/// Of one shape of a program. `bytes` is what memory-bound kernels read and write, what an exchange moves one way and
/// the nccl-tests size of a collective; `seq` counts keys. Requires sizes bound to the program.
PricedShape priced_shape(const Program& program, const Shape& shape, const Sizes& sizes);

/// "product 4,096 x 3,584 x 8,192", "all-gather of 64 MiB".
std::string in_words(const PricedShape& shape);

/// The fit that answers for a shape among so many ranks. Memory-bound kernels have none: the default.
FitScope fit_of(const PricedShape& shape, const Machine& machine, int ranks);

/// What limits the op at its price on the machine: compute where a shape has no sizes.
Limit limit_of(const PricedShape& shape, const Machine& machine, int ranks);

/// Standard error of the op's price beside those of parameters, relative: FitScope::residual_at its limit.
double residual_of(const PricedShape& shape, const Machine& machine, int ranks);

/// Where the shapes of a program lie below half of what a fit saw or above twice that, or among a number of ranks that
/// it did not see, one sentence a kind and size: "m 131,072: products were measured up to 16,384". Nobody looked: said
/// by the default residual and not here.
std::vector<std::string> outside_fit(const Program& program, const Sizes& sizes, const Machine& machine);

}  // namespace commfuse
