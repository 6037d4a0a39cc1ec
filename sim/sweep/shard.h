// SPDX-License-Identifier: Apache-2.0
// Divides the points of a sweep into shards that run on several machines.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace commfuse {

/// A part of a sweep, 1-based: part 1 of 1 is the whole sweep.
struct Shard {
  int part = 1;
  int parts = 1;
  friend bool operator==(const Shard&, const Shard&) = default;
};

inline constexpr int max_shards = 100'000;

/// Reads "3/7". "auto" takes the task's index and the number of tasks from a scheduler: a Slurm or PBS array, a
/// Kubernetes Indexed Job, MPI processes, GNU parallel or the tasks of a Slurm job; "auto/N" states the number where
/// the scheduler does not. `variable` stands for getenv(). Throws a ConfigError that begins with "--shard: ".
Shard parse_shard(std::string_view text, const std::function<const char*(const char*)>& variable);

/// Returns whether the point is in the shard. Every point is in exactly one shard. Points are dealt in blocks of up to
/// 64 consecutive points, and sizes of shards differ by at most one block. Neighbouring blocks, which have similar
/// costs, go to different shards, in an order that does not coincide with any axis of the grid.
bool belongs_to(const Shard& shard, std::size_t point, std::size_t points);

/// Returns the number of points in the shard.
std::size_t points_of(const Shard& shard, std::size_t points);

/// Returns "3-of-7".
std::string name_of(const Shard& shard);

}  // namespace commfuse
