// SPDX-License-Identifier: Apache-2.0
// Reads the layers of a Hugging Face model: attention and its window, a state space, experts, widths.
#pragma once

#include <string>

#include "model/config/hf_families.h"
#include "model/config/hf_file.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Sets the model's kinds of layers and its state space. When layers give their own `ffn` and `kv_heads`, the model
/// gets the values that most layers have. Requires `model` to have its hidden size, its numbers of layers, heads and
/// key-value heads, and its experts.
void read_hf_layers(HfFile& file, const std::string& type, const HfFamily& family, Transformer& model);

}  // namespace commfuse
