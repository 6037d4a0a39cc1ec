// SPDX-License-Identifier: Apache-2.0
// A part of a sweep: which of its points a machine does that does one part of several.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace commfuse {

/// 1-based: part 1 of 1 is all of it.
struct Shard {
  int part = 1;
  int parts = 1;
  friend bool operator==(const Shard&, const Shard&) = default;
};

inline constexpr int most_shards = 100'000;

/// "3/7"; "auto" is what a scheduler says of this task: a Slurm or PBS array, a Kubernetes Indexed Job ("auto/N" says
/// how many there are where the scheduler does not), processes of MPI, GNU parallel. `variable` is getenv(). Throws
/// ConfigError, which begins with "--shard: ".
Shard parse_shard(std::string_view text, const std::function<const char*(const char*)>& variable);

/// Every point belongs to one shard; shards differ by a block of points at most. Points near each other, which cost
/// alike, are dealt out in turn, in an order that no axis of the grid can fall in step with.
bool belongs_to(const Shard& shard, std::size_t point, std::size_t points);

/// How many points belong to it.
std::size_t points_of(const Shard& shard, std::size_t points);

/// "3-of-7"
std::string name_of(const Shard& shard);

}  // namespace commfuse
