// SPDX-License-Identifier: Apache-2.0
// The ops of a program as all prices and explanations see them: their sizes under the settings of prices, and the
// parameters that set the times of GEMMs.
#pragma once

#include "model/cost/gemm.h"
#include "model/cost/price_settings.h"
#include "model/dtype.h"
#include "model/hardware/accelerator.h"
#include "model/hardware/parameter.h"
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

/// Returns the bytes that an elementwise op reads and writes.
Bytes priced_traffic(const ElementwiseShape& elementwise, const Sizes& sizes, const PriceOptions& options);

/// Marks in `marked` the provenances of the parameters that set the time of a GEMM. `dtype` is its dtype in the
/// program, which options.gemm_dtype overrides.
void mark_gemm(const Accelerator& accelerator, DType dtype, const PriceOptions& options, Provenances& marked);

/// Marks in `marked` the provenances for the GEMMs of unfused attention, which have this dtype under all options.
void mark_gemms_of_scores(const Accelerator& accelerator, DType dtype, Provenances& marked);

}  // namespace commfuse
