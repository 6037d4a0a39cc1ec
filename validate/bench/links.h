// SPDX-License-Identifier: Apache-2.0
// Finds slow links and ranks: compares every ordered pair of ranks, and every rank's GEMM, with the rest.
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
  std::int32_t ranks = 2;                            ///< at least two
  std::vector<Bytes> sizes{{8 << 10}, {4 << 20}};    ///< one dominated by latency, one by bandwidth
  DType dtype = DType::bf16;                         ///< dtype of the data that is moved and multiplied
  GemmSize product{.m = 128, .n = 1024, .k = 1024};  ///< all ranks run it simultaneously, in the dtype above
};

/// Returns a program for every ordered pair and size, in which the other ranks are idle, and one for every rank's GEMM.
std::vector<MicroProgram> link_programs(const LinkPlan& plan);

/// A rank's GEMM or a pair's transfer, compared with the rest of its group.
struct ComparedPart {
  Rank rank = 0;
  Rank peer = -1;
  Estimate median;
  double ratio = 1.0;  ///< median over the usual time of the group
  bool slow = false;   ///< true if the whole 95% interval is above the usual time by more than the tolerance
};

/// Parts that should take the same time: GEMMs; transfers of one size inside hosts; transfers of one size between
/// hosts; copies of one size by one test of nvbandwidth.
struct PartGroup {
  std::string name;  ///< "GEMMs of 8 x 4 x 2", "transfers of 4 MiB between hosts", "device_to_host_memcpy_ce of 64 MiB"
  std::string op;    ///< Op of its micro-benchmarks.
  Bytes bytes{};     ///< 0: GEMMs
  bool between_hosts = false;
  Duration usual{};  ///< the median of the medians, the lower one for an even number
  std::vector<ComparedPart> parts;
};

struct LinkFindings {
  std::vector<PartGroup> groups;
  std::vector<std::string> culprits;  ///< a sentence for every culprit; empty if there is none
  std::vector<std::string> unjudged;  ///< names of groups with parts whose samples are too few for an interval
};

/// Evaluates the measurements of link_programs(), and those of copy_programs(), whose ranks are GPUs. Ignores other
/// measurements. `hosts` has the host of each rank; if it is empty, all ranks are on one host. With `tolerance` 0.2, up
/// to 20% longer than usual is fine. If at least two, and at least three quarters, of a rank's outgoing links, of its
/// incoming links, or of both are slow, names the rank instead of the links.
LinkFindings findings_in(std::span<const MicroBenchmark> measured, const std::vector<std::string>& hosts,
                         double tolerance);

/// Transfers that the machine should finish in less time: one sentence each, with the measured and the expected time.
struct LinksBelow {
  std::vector<std::string> sentences;
  std::size_t compared = 0;
  std::size_t left_out = 0;  ///< transfers that are not compared
};
/// Compares transfers of sizes at which the machine's bandwidth is the limit; the time of smaller transfers also
/// depends on the host. Compares transfers inside hosts, and transfers between hosts if the machine has a network.
/// `false_alarms` is the probability of any alarm among all transfers of a healthy machine. Requires 0 < false_alarms <
/// 0.5.
LinksBelow below_expectation(const LinkFindings& findings, const Machine& machine, double false_alarms);

/// Returns one matrix per size, with a title that names rows and columns; the values of GEMMs, and of copies with the
/// host, rank by rank; and the findings. Instead of a matrix with more than ten ranks or 80 columns, each rank has one
/// line: the medians of the transfers out of it and into it, and its slowest link. Titles of copies may be longer.
std::string to_table(const LinkFindings& findings, std::int32_t ranks, double tolerance);

}  // namespace commfuse::validate
