// SPDX-License-Identifier: Apache-2.0
// Llama-3.1-70B, for tests that read no file.
#pragma once

#include "model/workload/transformer.h"

namespace commfuse::test {

inline const Transformer llama_70b{.name = "llama-3.1-70b",
                                   .layers = 80,
                                   .hidden = 8192,
                                   .ffn = 28672,
                                   .heads = 64,
                                   .kv_heads = 8,
                                   .head_dim = 128,
                                   .vocab = 128256,
                                   .gated_mlp = true};

}  // namespace commfuse::test
