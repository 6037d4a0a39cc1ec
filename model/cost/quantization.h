// SPDX-License-Identifier: Apache-2.0
// Time to convert 16-bit activations to fp8 with one scale for the whole tensor, as a serving framework does before a
// GEMM in fp8: a conversion with a given scale, and the search for the scale.
//
//   conversion = call + (start^4 + work^4)^(1/4)
//   work       = 3 e x cost / (HBM bandwidth x efficiency) + blocks x block / SMs
//   scale      = scale call + scale blocks / 1024 x scale join + 2 e x scale cost / (HBM bandwidth x scale efficiency)
//   cost       = share kept x cached cost + 1 - share kept
//
// e counts elements. A conversion reads 2 bytes and writes 1; finding the scale reads 2. The L2 keeps input and output
// from one call to the next while they fit into a share of it. The blocks are those of TensorRT-LLM
// (cpp/tensorrt_llm/common/cudaFp8Utils.cu, 2026). A conversion uses one block per 2,048 elements, up to 65,536 blocks.
// Finding the scale uses one block per 1,024 elements, up to 1,024 blocks; each block merges its maximum with an atomic
// operation.
#pragma once

#include <cstdint>

#include "model/dtype.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

enum class QuantizationPart : std::uint8_t { conversion, scale };

/// One call. Requires rows, width >= 1.
struct QuantizationSize {
  std::int64_t rows = 1;
  std::int64_t width = 1;
  QuantizationPart part = QuantizationPart::conversion;
  DType dtype = DType::fp8;  ///< Dtype of the output. Only fp8 has fitted parameters.
};

/// Returns the bytes read and written, at most 2^62.
Bytes quantization_traffic(const QuantizationSize& size);

/// Returns the fitted parameters for this dtype; null if there are none.
const Quantization* quantization_of(const Accelerator& accelerator, DType dtype);

/// Returns the time on all SMs; for QuantizationPart::scale, the time that finding the scale adds. Requires fitted
/// parameters. Throws ConfigError if it exceeds `longest_op_seconds`.
Duration quantization_time(const Accelerator& accelerator, const QuantizationSize& size);

}  // namespace commfuse
