// SPDX-License-Identifier: Apache-2.0
// What a machine should do: every collective over sizes, with the range that healthy measurements keep to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/expect/expectation.h"

namespace commfuse::expect {

/// How NCCL is told to run, and what is there of the network; nothing: as the machine's file has it.
struct Setup {
  std::optional<bool> nvls{};
  std::optional<int> ctas{};   ///< Of a kernel, at most.
  std::optional<int> rails{};  ///< NICs of a node that work.
};

/// Throws ConfigError for NVLS where no switch sums, for rails without a network or more than a node has, for fewer
/// CTAs than one.
Machine with_setup(Machine machine, const Setup& setup);

struct Question {
  std::vector<LinkOp> ops;
  std::vector<std::int64_t> gpus;  ///< In all; a group fills whole nodes where it is larger than one.
  std::vector<Bytes> sizes;
  double false_alarms = 0.01;  ///< Share of healthy measurements that are slower than `slow`, and as many faster.
};

struct ExpectedRow {
  Message message;
  Duration time{};
  ExpectedRange range;
  Limit limit = Limit::bandwidth;
  std::string kernel;  ///< NCCL's, where the machine knows them; else empty.
  Bytes saturation;    ///< The size from which on this collective has 90% of its bus bandwidth.
};

/// Exchanges are of two GPUs, whatever `gpus`: inside a node, and between two nodes where there are several. Throws
/// ConfigError for GPUs that the machine has not.
std::vector<ExpectedRow> expected_rows(const Expectation& expectation, const Question& question);

/// Powers of `factor` from the least to the largest size. Throws ConfigError for a size that is 0 or above 64 GiB, for
/// sizes the wrong way round, and for a factor below 2.
std::vector<Bytes> sizes_between(Bytes least, Bytes largest, std::int64_t factor);

}  // namespace commfuse::expect
