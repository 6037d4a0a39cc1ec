// SPDX-License-Identifier: Apache-2.0
// A model whose steps are priced quickly.
#pragma once

#include "model/workload/transformer.h"

namespace commfuse::test {

inline const Transformer small_transformer{.name = "small",
                                           .layers = 8,
                                           .hidden = 2048,
                                           .ffn = 8192,
                                           .heads = 16,
                                           .kv_heads = 16,
                                           .head_dim = 128,
                                           .vocab = 32000};

}  // namespace commfuse::test
