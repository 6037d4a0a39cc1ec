// SPDX-License-Identifier: Apache-2.0
// The expected time of every collective over a range of sizes, with the interval of healthy measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/expect/expectation.h"
#include "sim/expect/nccl_version.h"

namespace commfuse::expect {

/// Settings of NCCL and the working part of the network. An empty member keeps the value of the machine's file.
struct Setup {
  std::optional<bool> nvls{};
  std::optional<int> ctas{};   ///< Upper limit of CTAs per kernel.
  std::optional<int> rails{};  ///< Working NICs per node.
  std::optional<NcclVersion> nccl{};
};

/// Applies the setup to a machine. An NCCL version without NVLS turns NVLS off. Throws ConfigError if `nvls` is set but
/// the machine has no NVLS (sums in the switch), or is true for a version without NVLS. Also throws ConfigError if
/// `ctas` is below 1, and if `rails` is set for a machine without a network or is not between 1 and the number of NICs
/// of a node.
Machine with_setup(Machine machine, const Setup& setup);

struct Question {
  std::vector<LinkOp> ops;
  std::vector<std::int64_t> gpus;  ///< Numbers of GPUs in a group; a group larger than a node must fill its nodes.
  std::vector<Bytes> sizes;
  /// Share of healthy measurements that are slower than `slow`; the same share is faster than `fast`.
  double false_alarms = 0.01;
  std::int64_t gpus_per_node = 0;  ///< GPUs per node that take part; 0: all.
};

struct ExpectedRow {
  Message message;
  Duration time{};
  ExpectedRange range;
  Limit limit = Limit::bandwidth;
  std::string kernel;  ///< NCCL's kernel if the machine's file determines it; otherwise empty.
  Bytes saturation;    ///< Size from which this collective reaches 90% of its bus bandwidth.
};

/// Exchanges are always between two GPUs, regardless of `gpus`: inside a node, and between two nodes if the machine has
/// several. Throws ConfigError for GPU counts that do not fit the machine or its nodes.
std::vector<ExpectedRow> expected_rows(const Expectation& expectation, const Question& question);

/// Returns `smallest` times each power of `factor`, up to `largest`. Throws ConfigError for a size of 0 or above 64
/// GiB, for a largest size below the smallest, and for a factor below 2.
std::vector<Bytes> sizes_between(Bytes smallest, Bytes largest, std::int64_t factor);

}  // namespace commfuse::expect
