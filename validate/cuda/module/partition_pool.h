// SPDX-License-Identifier: Apache-2.0
// Tracks which multiprocessors (SMs) belong to partitions and which are free. The driver is a template parameter, so
// that tests need no driver.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace commfuse::validate {

/// `Contexts` is the interface to the driver and defines the types Resource and Context. whole() returns the resource
/// of the whole device, count() the number of multiprocessors of a resource. split() returns the part taken and the
/// rest, or nullopt if there are too few multiprocessors. create() makes a context; destroy() ends it and does not
/// throw.
template <class Contexts>
class PartitionPool {
 public:
  using Resource = typename Contexts::Resource;
  using Context = typename Contexts::Context;

  explicit PartitionPool(Contexts contexts) : contexts_(std::move(contexts)) {}
  PartitionPool(const PartitionPool&) = delete;
  PartitionPool& operator=(const PartitionPool&) = delete;
  ~PartitionPool() {
    for (const std::optional<Part>& part : parts_) {
      if (part) {
        contexts_.destroy(part->context);
      }
    }
  }

  /// Makes a partition of at least `multiprocessors` free multiprocessors. Returns its number, which is not reused.
  /// Throws std::runtime_error if too few are free.
  std::size_t add(int multiprocessors) {
    if (std::ranges::none_of(parts_, [](const auto& part) { return part.has_value(); })) {
      left_ = {contexts_.whole()};  // This is the only way to join returned pieces.
    }
    std::ranges::stable_sort(left_, {}, [this](const Resource& piece) { return contexts_.count(piece); });
    for (Resource& piece : left_) {
      if (contexts_.count(piece) < multiprocessors) {
        continue;
      }
      if (std::optional<std::pair<Resource, Resource>> split = contexts_.split(piece, multiprocessors)) {
        parts_.push_back(Part{.resource = split->first, .context = contexts_.create(split->first)});
        piece = split->second;
        return parts_.size() - 1;
      }
    }
    throw std::runtime_error(fmt::format("fewer than {} multiprocessors are left for a partition", multiprocessors));
  }

  /// Ends the partition's context and frees its multiprocessors. Requires that nothing uses the context.
  void give_back(std::size_t id) {
    const Part part = this->part(id);
    parts_[id].reset();
    contexts_.destroy(part.context);
    left_.push_back(part.resource);
  }

  [[nodiscard]] bool contains(std::size_t id) const { return id < parts_.size() && parts_[id].has_value(); }
  [[nodiscard]] int multiprocessors(std::size_t id) const { return contexts_.count(part(id).resource); }
  [[nodiscard]] Context context(std::size_t id) const { return part(id).context; }

 private:
  struct Part {
    Resource resource;
    Context context;
  };

  [[nodiscard]] const Part& part(std::size_t id) const {
    if (!contains(id)) {
      throw std::runtime_error("a partition is used that was not made, or was given back");
    }
    return *parts_[id];
  }

  Contexts contexts_;
  std::vector<Resource> left_;
  std::vector<std::optional<Part>> parts_;
};

}  // namespace commfuse::validate
