// SPDX-License-Identifier: Apache-2.0
// What stands in each layer of a model of Hugging Face: attention and its window, a state space, experts, widths.
#pragma once

#include <string>

#include "model/config/hf_families.h"
#include "model/config/hf_file.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Gives the model its kinds of layers, its state space, and where layers say so its `ffn` and `kv_heads`: what most
/// layers have. Requires its numbers of layers and heads, and its experts.
void read_hf_layers(HfFile& file, const std::string& type, const HfFamily& family, Transformer& model);

}  // namespace commfuse
