// SPDX-License-Identifier: Apache-2.0
// The expected time of every collective over a range of sizes, with the interval that healthy measurements keep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/expect/expectation.h"
#include "sim/expect/nccl_version.h"

namespace commfuse::expect {

/// Settings of NCCL and the working part of the network; nothing: as the machine's file has it.
struct Setup {
  std::optional<bool> nvls{};
  std::optional<int> ctas{};   ///< CTAs of a kernel, at most.
  std::optional<int> rails{};  ///< Working NICs of a node.
  std::optional<NcclVersion> nccl{};
};

/// A version of NCCL without NVLS turns it off. Throws ConfigError for NVLS with such a version or without a switch
/// that sums, for rails without a network or above a node's NICs, and for fewer than one CTA.
Machine with_setup(Machine machine, const Setup& setup);

struct Question {
  std::vector<LinkOp> ops;
  std::vector<std::int64_t> gpus;  ///< Total GPUs; a group that is larger than a node fills nodes.
  std::vector<Bytes> sizes;
  double false_alarms =
      0.01;  ///< Share of healthy measurements that are slower than `slow`; as many are faster than `fast`.
  std::int64_t gpus_per_node = 0;  ///< GPUs of each node that take part; 0: all of them.
};

struct ExpectedRow {
  Message message;
  Duration time{};
  ExpectedRange range;
  Limit limit = Limit::bandwidth;
  std::string kernel;  ///< NCCL's kernel, where the machine's file names it; otherwise empty.
  Bytes saturation;    ///< Size from which this collective reaches 90% of its bus bandwidth.
};

/// Exchanges are between two GPUs, whatever `gpus` is: inside a node, and between two nodes where there are several.
/// Throws ConfigError for more GPUs than the machine or a node of it has.
std::vector<ExpectedRow> expected_rows(const Expectation& expectation, const Question& question);

/// Returns the powers of `factor` from the smallest to the largest size. Throws ConfigError for a size of 0 or above 64
/// GiB, for a largest size below the smallest, and for a factor below 2.
std::vector<Bytes> sizes_between(Bytes least, Bytes largest, std::int64_t factor);

}  // namespace commfuse::expect
