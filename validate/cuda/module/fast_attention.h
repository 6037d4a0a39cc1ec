// SPDX-License-Identifier: Apache-2.0
// Attention as two cuBLASLt GEMMs with a softmax between them. Its time is realistic; its last bits differ from the
// reference.
#pragma once

#include <functional>

#include "validate/cuda/module/products.h"

namespace commfuse::validate {

/// `room` returns device memory of the requested number of bytes, for the scores and weights of one chunk of queries.
/// The number is at most attention_room, except for very long rows.
void launch_fast_attention(cudaStream_t stream, LibraryProducts& products, const Workspace& workspace,
                           const std::function<void*(std::size_t)>& room, const AttentionCall& call);

inline constexpr std::size_t attention_room = std::size_t{512} << 20U;

}  // namespace commfuse::validate
