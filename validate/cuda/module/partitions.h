// SPDX-License-Identifier: Apache-2.0
// Multiprocessors reserved by green contexts. Green contexts belong to the CUDA driver API, which is not linked: its
// functions are looked up on first use.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "validate/cuda/module/handles.h"
#include "validate/cuda/module/partition_pool.h"

namespace commfuse::validate {

/// The driver's calls for green contexts. whole(), which PartitionPool calls first, throws std::runtime_error if CUDA
/// is older than 12.5.
class GreenContexts {
 public:
  using Resource = CUdevResource;
  using Context = CUgreenCtx;

  explicit GreenContexts(int device) : device_(device) {}

  [[nodiscard]] Resource whole() const;
  [[nodiscard]] static int count(const Resource& resource) { return static_cast<int>(resource.sm.smCount); }
  [[nodiscard]] std::optional<std::pair<Resource, Resource>> split(const Resource& from, int multiprocessors) const;
  [[nodiscard]] Context create(Resource resource) const;
  void destroy(Context context) const noexcept;

 private:
  int device_ = 0;
};

/// The partitions of one device.
class Partitions {
 public:
  explicit Partitions(int device) : pool_(GreenContexts(device)) {}

  /// Reserves at least `multiprocessors` free multiprocessors; devices provide them in groups. Throws
  /// std::runtime_error if too few are free, or if CUDA is older than 12.5.
  std::size_t add(int multiprocessors) { return pool_.add(multiprocessors); }
  /// Requires that the partition's streams are destroyed.
  void give_back(std::size_t id) { pool_.give_back(id); }
  [[nodiscard]] int multiprocessors(std::size_t id) const { return pool_.multiprocessors(id); }
  [[nodiscard]] bool contains(std::size_t id) const { return pool_.contains(id); }
  /// Returns a stream whose kernels run only in the partition. The partition must outlive the stream.
  [[nodiscard]] OwnedStream new_stream(std::size_t id, int priority) const;

 private:
  PartitionPool<GreenContexts> pool_;
};

}  // namespace commfuse::validate
