// SPDX-License-Identifier: Apache-2.0
// Sizes of a program's shapes at a point, in the form that the cost model needs.
#pragma once

#include <cstdint>
#include <optional>

#include "model/cost/attention.h"
#include "model/cost/gemm.h"
#include "model/program/program.h"
#include "model/program/sizes.h"

namespace commfuse {

/// Returns the size of a GEMM; for a part of a kernel, the size of the whole kernel. `run` stays zero. The activations
/// count as having the GEMM's dtype already, so they are not converted.
GemmSize gemm_size(const GemmShape& gemm, const Sizes& sizes);

/// Rows that are cut into parts; the parts differ by at most one row.
struct EvenParts {
  std::int64_t rows = 0;
  std::int64_t parts = 1;
};

/// Returns the rows of the largest part.
constexpr std::int64_t largest_part(const EvenParts& even) {
  return even.rows / even.parts + (even.rows % even.parts == 0 ? 0 : 1);
}

/// Returns the size with factors of another dtype, if one is given. The activations are converted to this dtype; the
/// output keeps its own.
GemmSize with_factors(GemmSize size, const std::optional<DType>& factors);

AttentionSize attention_size(const AttentionShape& attention, const Sizes& sizes);

/// Returns the bytes read and written.
Bytes traffic_of(const ElementwiseShape& elementwise, const Sizes& sizes);

/// Returns the bytes that an exchange moves one way.
Bytes load_of(const ExchangeShape& exchange, const Sizes& sizes);

/// Returns the nccl-tests size of a collective.
Bytes load_of(const CollectiveShape& collective, const Sizes& sizes);

}  // namespace commfuse
