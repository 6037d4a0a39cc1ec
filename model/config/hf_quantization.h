// SPDX-License-Identifier: Apache-2.0
// How a checkpoint of Hugging Face keeps its weights: quantization_config of config.json, or hf_quant_config.json
// beside it.
#pragma once

#include <optional>

#include "model/config/hf_file.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Nothing where weights are as wide as activations. Known: fp8, fbgemm_fp8, modelopt and compressed-tensors (FP8,
/// NVFP4, W4A16 and mixes of them), mxfp4, awq, gptq, bitsandbytes. A method that is not known is noted, and its
/// weights are taken for 16 bits wide.
std::optional<WeightFormat> read_hf_quantization(HfFile& file, const Transformer& model);

}  // namespace commfuse
