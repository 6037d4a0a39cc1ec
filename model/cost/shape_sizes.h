// SPDX-License-Identifier: Apache-2.0
// The shapes of a program at a point, in the sizes that the cost model takes.
#pragma once

#include "model/cost/attention.h"
#include "model/cost/gemm.h"
#include "model/program/program.h"
#include "model/program/sizes.h"

namespace commfuse {

/// Of a part: its whole kernel's. `run` is left at nothing.
GemmSize gemm_size(const GemmShape& gemm, const Sizes& sizes);

AttentionSize attention_size(const AttentionShape& attention, const Sizes& sizes);

/// Bytes read and written.
Bytes traffic_of(const ElementwiseShape& elementwise, const Sizes& sizes);

/// Bytes that an exchange moves one way.
Bytes load_of(const ExchangeShape& exchange, const Sizes& sizes);

/// The nccl-tests size of a collective.
Bytes load_of(const CollectiveShape& collective, const Sizes& sizes);

}  // namespace commfuse
