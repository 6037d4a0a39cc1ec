// SPDX-License-Identifier: Apache-2.0
// The GEMMs of a program as all prices and explanations see them: their sizes, and what the settings of prices add.
#pragma once

#include "model/cost/gemm.h"
#include "model/cost/price_settings.h"
#include "model/program/program.h"
#include "model/program/sizes.h"
#include "model/units.h"

namespace commfuse {

/// Returns the FLOPs of a rank's unsliced GEMMs, which determine how hot the chip runs. They are the same for all
/// strategies, so that strategies are compared on an equally hot chip.
Flops heating_work(const Program& program, const Sizes& sizes, const PriceOptions& options);

/// Returns the size of a GEMM with the dtypes and weights that the options give it, before it is divided among experts
/// (grouped() in expert_gemm.h). `heating` is heating_work() of its program.
GemmSize priced_gemm(const GemmShape& gemm, const Sizes& sizes, const PriceOptions& options, Flops heating);

}  // namespace commfuse
