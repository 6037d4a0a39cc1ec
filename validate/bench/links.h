// SPDX-License-Identifier: Apache-2.0
// Which link and which rank is off: every ordered pair of ranks by itself, every rank's product, each against the rest.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/analysis/percentiles.h"
#include "model/hardware/machine.h"
#include "model/record/run_record.h"
#include "validate/bench/micro_program.h"

namespace commfuse::validate {

struct LinkPlan {
  std::int32_t ranks = 2;                            ///< At least two.
  std::vector<Bytes> sizes{{8 << 10}, {4 << 20}};    ///< One that latency decides, one that bandwidth decides.
  DType dtype = DType::bf16;                         ///< Of what is moved and multiplied.
  GemmSize product{.m = 128, .n = 1024, .k = 1024};  ///< All ranks do it at once; its dtype is the one above.
};

/// A program for every ordered pair and size, in which nobody else does anything, and one for every rank's product.
std::vector<MicroProgram> link_programs(const LinkPlan& plan);

/// A rank's product or a pair's transfer beside the others of its group.
struct ComparedPart {
  Rank rank = 0;
  Rank peer = -1;
  Estimate median;
  double ratio = 1.0;  ///< To what is usual in the group.
  bool off = false;    ///< Longer than usual by more than the tolerance, all of its 95 % interval.
};

/// What should take the same time: products; transfers of one size inside hosts; the same between hosts.
struct PartGroup {
  std::string name;  ///< "products", "transfers of 4 MiB", "transfers of 4 MiB between hosts"
  Bytes bytes{};     ///< 0: products.
  bool between_hosts = false;
  Duration usual{};  ///< The median of the medians, the lower one of an even number.
  std::vector<ComparedPart> parts;
};

struct LinkFindings {
  std::vector<PartGroup> groups;
  std::vector<std::string> off;  ///< A sentence for every culprit; empty: nothing stands out.
};

/// Looks at what link_programs() measured and passes over everything else. `hosts` by rank, or empty: all on one.
/// `tolerance` 0.2: 20 % longer than usual is still fine. Where at least two and three quarters of the links out of a
/// rank, into it, or both are off, the rank is named and not each link.
LinkFindings findings_in(std::span<const MicroBenchmark> measured, const std::vector<std::string>& hosts,
                         double tolerance);

/// Transfers that a machine should do in less time: a sentence each, with what was measured and expected. Compared are
/// sizes that the machine's bandwidth limits: below them the host's calls count. Inside hosts, and between them where
/// the machine has a network. All transfers share the rate of false alarms. Requires 0 < false_alarms < 0.5.
struct LinksBelow {
  std::vector<std::string> sentences;
  std::size_t compared = 0;
  std::size_t left_out = 0;  ///< Transfers that are not compared.
};
LinksBelow below_expectation(const LinkFindings& findings, const Machine& machine, double false_alarms);

/// A matrix a size, from (down) to (right), a line of products, and what is off; at most 80 columns. Of more than ten
/// ranks a line a rank: the medians out of it and into it, and its slowest link.
std::string to_table(const LinkFindings& findings, std::int32_t ranks, double tolerance);

}  // namespace commfuse::validate
