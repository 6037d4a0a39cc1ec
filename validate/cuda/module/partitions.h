// SPDX-License-Identifier: Apache-2.0
// Multiprocessors set apart by green contexts. They belong to the driver's interface, which nothing is linked with: it
// is asked for its functions when one is made.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "validate/cuda/module/handles.h"

namespace commfuse::validate {

/// Of one device. What is set apart is never given back before the end.
class Partitions {
 public:
  explicit Partitions(int device) : device_(device) {}

  /// At least so many of those that are left; devices hand them out in groups. Throws std::runtime_error where there
  /// are too few, or CUDA is older than 12.5.
  std::size_t add(int multiprocessors);
  [[nodiscard]] int multiprocessors(std::size_t which) const { return parts_[which].multiprocessors; }
  [[nodiscard]] std::size_t size() const { return parts_.size(); }
  /// Its kernels run on these only. The partition outlives it.
  [[nodiscard]] OwnedStream new_stream(std::size_t which, int priority) const;

 private:
  struct Destroy {
    void operator()(CUgreenCtx context) const;
  };
  struct Part {
    std::unique_ptr<CUgreenCtx_st, Destroy> context;
    int multiprocessors = 0;
  };

  int device_ = 0;
  std::optional<CUdevResource> left_;
  std::vector<Part> parts_;
};

}  // namespace commfuse::validate
