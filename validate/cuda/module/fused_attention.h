// SPDX-License-Identifier: Apache-2.0
// Attention by a single fused kernel of cuDNN, if cuDNN is installed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "validate/cuda/attention_pieces.h"

namespace commfuse::validate {

/// Keeps a plan for every shape that it has seen. Only one thread may use it, on one device.
class FusedAttention {
 public:
  FusedAttention();
  FusedAttention(const FusedAttention&) = delete;
  FusedAttention& operator=(const FusedAttention&) = delete;
  ~FusedAttention();

  /// Returns a string such as "9.19.0".
  [[nodiscard]] std::string version() const;
  /// Returns why cuDNN does not accept these pieces, as the end of a sentence; empty if run() accepts them. Makes a
  /// plan for every new shape, which compiles and loads kernels. Before that, calls `require_open`, which throws if
  /// kernels cannot be loaded now.
  [[nodiscard]] std::string refused(const std::vector<AttentionPiece>& pieces,
                                    const std::function<void()>& require_open);
  /// Requires that refused() returned an empty text for these pieces. `room` returns device memory of the stream.
  void run(cudaStream_t stream, const std::vector<AttentionPiece>& pieces,
           const std::function<void*(std::size_t)>& room);

 private:
  class Plan;
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

}  // namespace commfuse::validate
