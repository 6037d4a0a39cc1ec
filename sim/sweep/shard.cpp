// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "model/config_error.h"
#include "model/text/counted.h"
#include "model/text/quantity.h"

namespace commfuse {

namespace {

using Variable = std::function<const char*(const char*)>;

std::optional<std::int64_t> number_in(const Variable& variable, const char* name) {
  const char* text = variable(name);
  return text == nullptr ? std::nullopt : parse_integer(text);
}

/// A task's 0-based index among the tasks of its scheduler, and their count where the scheduler provides it.
struct Task {
  std::int64_t index = 0;
  std::optional<std::int64_t> count;
};

std::optional<Task> slurm_array(const Variable& variable) {
  const auto id = number_in(variable, "SLURM_ARRAY_TASK_ID");
  const auto first = number_in(variable, "SLURM_ARRAY_TASK_MIN");
  const auto count = number_in(variable, "SLURM_ARRAY_TASK_COUNT");
  const std::int64_t step = std::max<std::int64_t>(1, number_in(variable, "SLURM_ARRAY_TASK_STEP").value_or(1));
  if (!id || !first || !count) {
    return std::nullopt;
  }
  return Task{(*id - *first) / step, count};
}

/// Reads an index and a count from two variables; `from` is the number of the first task.
std::optional<Task> numbered_task(const Variable& variable, const char* index, const char* count,
                                  std::int64_t from = 0) {
  const auto own_index = number_in(variable, index);
  const auto task_count = count == nullptr ? std::nullopt : number_in(variable, count);
  return own_index ? std::optional(Task{*own_index - from, task_count}) : std::nullopt;
}

/// Returns the task of the first scheduler whose variables are set. Slurm arrays come before MPI: if mpirun starts the
/// processes of a task of an array, all of them have the shard of that task. SLURM_PROCID comes last, because Slurm
/// sets it in every job, even in one that runs mpirun or GNU parallel.
std::optional<Task> task_of(const Variable& variable) {
  if (const auto array = slurm_array(variable)) {
    return array;
  }
  struct Names {
    const char* index;
    const char* count;
    std::int64_t from = 0;
  };
  constexpr std::array known{Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                             Names{"PMI_RANK", "PMI_SIZE"},
                             Names{"JOB_COMPLETION_INDEX", nullptr},
                             Names{"PBS_ARRAY_INDEX", nullptr},
                             Names{"PARALLEL_SEQ", nullptr, 1},
                             Names{"SLURM_PROCID", "SLURM_NTASKS"}};
  for (const Names& names : known) {
    if (const auto task = numbered_task(variable, names.index, names.count, names.from)) {
      return task;
    }
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const std::string& sentence) { throw ConfigError("--shard: " + sentence); }

Shard checked(std::int64_t part, std::int64_t parts) {
  if (parts < 1 || parts > max_shards || part < 1 || part > parts) {
    refuse(fmt::format("part {} of {} does not exist; choose 1/N to N/N with N at most {}", part, parts, max_shards));
  }
  return {static_cast<int>(part), static_cast<int>(parts)};
}

Shard automatic(std::optional<std::int64_t> parts, const Variable& variable) {
  const std::optional<Task> task = task_of(variable);
  if (!task) {
    refuse(
        "auto finds no task of a scheduler in the environment (Slurm, PBS, Kubernetes, MPI, GNU parallel); write the "
        "part, as in 3/7");
  }
  if (!parts && !task->count) {
    refuse("auto finds the number of this task but not the number of tasks; write the number of tasks, as in auto/7");
  }
  if (parts && task->count && *parts != *task->count) {
    refuse(
        fmt::format("auto/{} was given, but the scheduler runs {}; write auto", *parts, counted(*task->count, "task")));
  }
  Shard shard = checked(1, parts ? *parts : *task->count);
  if (task->index < 0 || task->index >= shard.parts) {
    refuse(fmt::format(
        "auto finds task {} of {}, counted from 0; number the tasks from 0 without gaps, or write the part, as in 3/7",
        task->index, shard.parts));
  }
  shard.part += static_cast<int>(task->index);
  return shard;
}

/// Hashes two numbers into one (SplitMix64's finisher).
std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9e3779b97f4a7c15 + b;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/// Returns the number of consecutive points that go to the same part.
std::uint64_t block_size(std::size_t points, std::uint64_t parts) {
  return std::clamp<std::uint64_t>(points / (parts * 64), 1, 64);
}

/// Returns which of the `parts` gets the block at `position` in a round: each part gets one block per round. The order
/// rotates by the round, so that no period of the grid gives the same part the same points every time.
std::uint64_t part_of(std::uint64_t round, std::uint64_t position, std::uint64_t parts) {
  return (position + mixed(round, 0) % parts) % parts;
}

}  // namespace

Shard parse_shard(std::string_view text, const Variable& variable) {
  const std::size_t slash = text.find('/');
  const std::string_view part = text.substr(0, slash);
  const bool has_parts = slash != std::string_view::npos;
  const std::optional<std::int64_t> parts = parse_integer(has_parts ? text.substr(slash + 1) : std::string_view());
  if (part == "auto" && (!has_parts || parts)) {
    return automatic(parts, variable);
  }
  const std::optional<std::int64_t> number = parse_integer(part);
  if (!number || !parts) {
    refuse(fmt::format("'{}' is not a part; write one, as in 3/7, or auto", text));
  }
  return checked(*number, *parts);
}

bool belongs_to(const Shard& shard, std::size_t point, std::size_t points) {
  if (shard.parts == 1) {
    return true;
  }
  const auto parts = static_cast<std::uint64_t>(shard.parts);
  const std::uint64_t block = point / block_size(points, parts);
  return part_of(block / parts, block % parts, parts) == static_cast<std::uint64_t>(shard.part - 1);
}

std::size_t points_of(const Shard& shard, std::size_t points) {
  const auto parts = static_cast<std::uint64_t>(shard.parts);
  const std::uint64_t block = block_size(points, parts);
  const std::uint64_t rounds = points / (block * parts);
  std::size_t count = rounds * block;
  // In the last, incomplete round, each part gets part of a block, a whole block, or nothing.
  for (std::uint64_t begin = rounds * block * parts; begin < points; begin += block) {
    count += belongs_to(shard, begin, points) ? std::min<std::size_t>(block, points - begin) : 0;
  }
  return count;
}

std::string name_of(const Shard& shard) { return fmt::format("{}-of-{}", shard.part, shard.parts); }

}  // namespace commfuse
