// SPDX-License-Identifier: Apache-2.0
// Reads the weight format of a Hugging Face checkpoint from quantization_config in config.json, or from
// hf_quant_config.json next to it.
#pragma once

#include <optional>

#include "model/config/hf_file.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Returns nullopt when weights are as wide as activations. Known methods: fp8, fbgemm_fp8, modelopt and
/// compressed-tensors (FP8, NVFP4, W4A16 and mixes of them), mxfp4, awq, gptq, gptqmodel, auto-round, bitsandbytes. An
/// unknown method is noted, and its weights are counted as 16 bits wide.
std::optional<WeightFormat> read_hf_quantization(HfFile& file, const Transformer& model);

}  // namespace commfuse
