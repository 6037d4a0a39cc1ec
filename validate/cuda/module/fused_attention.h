// SPDX-License-Identifier: Apache-2.0
// Attention by one fused kernel of cuDNN's, if that is installed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "validate/cuda/attention_pieces.h"

namespace commfuse::validate {

/// Keeps a plan of every shape that it has met. Used by one thread, on one device.
class FusedAttention {
 public:
  FusedAttention();
  FusedAttention(const FusedAttention&) = delete;
  FusedAttention& operator=(const FusedAttention&) = delete;
  ~FusedAttention();

  /// "9.19.0".
  [[nodiscard]] std::string version() const;
  /// Returns why it does not take these pieces, as the end of a sentence; empty: run() does. For a new shape it makes a
  /// plan, which `require_open` must allow, because kernels are compiled and loaded.
  [[nodiscard]] std::string refused(const std::vector<AttentionPiece>& pieces,
                                    const std::function<void()>& require_open);
  /// Requires that refused() was empty for these. `room` returns device memory of the stream.
  void run(cudaStream_t stream, const std::vector<AttentionPiece>& pieces,
           const std::function<void*(std::size_t)>& room);

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

}  // namespace commfuse::validate
