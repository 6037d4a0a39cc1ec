// SPDX-License-Identifier: Apache-2.0
// An op described by the sizes of the cost model, the fit that covers it, and whether that fit included such sizes.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "model/cost/expert_split.h"
#include "model/dtype.h"
#include "model/hardware/machine.h"
#include "model/program/program.h"
#include "model/program/sizes.h"

namespace commfuse {

enum class PricedKind : std::uint8_t {
  product,
  attention,
  decode_attention,  ///< Decode attention, which no program has.
  latent_decode,     ///< Latent decode attention, which no program has.
  expert_layer,      ///< All routed experts of a layer as one call, which no program has.
  quantization,      ///< Conversion of activations to fp8, which no program has.
  memory_bound,
  framework_kernel,  ///< A memory-bound kernel of a serving framework, between its GEMMs.
  exchange,
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all
};

/// Returns a name such as "GEMM" or "all-gather".
std::string_view name_of(PricedKind kind);

struct PricedShape {
  PricedKind kind = PricedKind::product;
  /// Dtype of a GEMM, an attention or experts; bf16 for all other ops, whatever they move.
  DType dtype = DType::bf16;
  /// Ordered by FitSize; 0 if the kind has no such size. An attention has its query rows as m, its heads as n, the
  /// width of one head as k, and the bytes of its keys and values; in decoding, m counts sequences, and k is the width
  /// of a latent key. An expert layer has the rows of its GPU as m, the width of an expert as n, the hidden size as k,
  /// and the bytes of the weights that are read.
  std::array<std::int64_t, all_fit_sizes.size()> size{};
  int nodes = 0;  ///< Nodes of a message, with the same number of its ranks on each; 0: as few as hold the ranks.
  auto operator<=>(const PricedShape&) const = default;
};

/// Returns the sizes of one shape of a program. `bytes` is the traffic of memory-bound kernels, the bytes that an
/// exchange moves one way, and the nccl-tests size of a collective; `seq` counts keys. The GEMM of experts has all
/// routed rows of a rank as m. Requires `sizes` bound to the program.
PricedShape priced_shape(const Program& program, const Shape& shape, const Sizes& sizes,
                         const ExpertSplit& experts = {});

/// Returns a string such as "GEMM 4K x 3584 x 8K" or "all-gather of 64 MiB".
std::string in_words(const PricedShape& shape);

/// Returns true if a message among `ranks` ranks goes over several nodes.
bool crosses_nodes(const PricedShape& shape, const Machine& machine, int ranks);

/// Returns the fit that covers a shape among `ranks` ranks. Kinds without a fit get the default, as memory-bound
/// kernels of the model's own programs always do.
FitScope fit_of(const PricedShape& shape, const Machine& machine, int ranks);

/// Returns what limits the op at its price on the machine. Without sizes, a GEMM or the attention of prefill counts as
/// compute, and decoding or an expert layer as bandwidth; memory-bound kernels and quantization always count as
/// bandwidth.
Limit limit_of(const PricedShape& shape, const Machine& machine, int ranks);

/// Returns the relative standard error of the op's price that its parameters do not explain: FitScope::residual_at for
/// its limit.
double residual_of(const PricedShape& shape, const Machine& machine, int ranks);

/// Lists the shapes of a program below half of the smallest or above twice the largest size of a fit, or among fewer or
/// more ranks than the fit included: one sentence per kind, size and direction, such as "m 131,072: GEMMs were measured
/// up to 16,384". For attention, only the number of keys is compared. Shapes without a fit are not reported here; the
/// default residual covers them.
std::vector<std::string> outside_fit(const Program& program, const Sizes& sizes, const Machine& machine,
                                     const ExpertSplit& experts = {});

}  // namespace commfuse
