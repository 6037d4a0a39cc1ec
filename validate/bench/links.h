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
  GemmSize product{.m = 128, .n = 1024, .k = 1024};  ///< all ranks run it at once, in the dtype above
};

/// Returns a program for every ordered pair and size, in which the other ranks are idle, and one for every rank's GEMM.
std::vector<MicroProgram> link_programs(const LinkPlan& plan);

/// A rank's GEMM or a pair's transfer beside the others of its group.
struct ComparedPart {
  Rank rank = 0;
  Rank peer = -1;
  Estimate median;
  double ratio = 1.0;  ///< over the usual time in the group
  bool off = false;    ///< longer than usual by more than the tolerance, over its whole 95% interval
};

/// Parts that should take the same time: GEMMs; transfers of one size inside hosts; transfers of one size between
/// hosts; copies of one size by one test of nvbandwidth.
struct PartGroup {
  std::string name;  ///< "products", "transfers of 4 MiB between hosts", "device_to_host_memcpy_ce of 64 MiB"
  std::string op;    ///< Op of its micro-benchmarks.
  Bytes bytes{};     ///< 0: GEMMs
  bool between_hosts = false;
  Duration usual{};  ///< the median of the medians, the lower one for an even number
  std::vector<ComparedPart> parts;
};

struct LinkFindings {
  std::vector<PartGroup> groups;
  std::vector<std::string> off;  ///< a sentence for every culprit; empty: none
};

/// Evaluates the measurements of link_programs() and copy_programs(), whose ranks are GPUs, and ignores all others.
/// `hosts` by rank, or empty: all on one host.
/// `tolerance` 0.2: up to 20% longer than usual is fine. Where at least two and three quarters of the links out of a
/// rank, into it, or both are slow, the rank is named in place of its links.
LinkFindings findings_in(std::span<const MicroBenchmark> measured, const std::vector<std::string>& hosts,
                         double tolerance);

/// Transfers that the machine should finish in less time: one sentence each, with measured and expected time.
struct LinksBelow {
  std::vector<std::string> sentences;
  std::size_t compared = 0;
  std::size_t left_out = 0;  ///< transfers that are not compared
};
/// Compares transfers of sizes that the machine's bandwidth limits; at smaller sizes the host's calls count. Compares
/// inside hosts, and between them if the machine has a network. All transfers share the rate of false alarms. Requires
/// 0 < false_alarms < 0.5.
LinksBelow below_expectation(const LinkFindings& findings, const Machine& machine, double false_alarms);

/// Returns one matrix per size, from (down) to (right), a line of GEMMs and of copies with the host, and the findings.
/// Matrices have at most 80 columns; titles and findings that name copies may be longer. With more than ten ranks,
/// there is one line per rank: the medians out of it and into it, and its slowest link.
std::string to_table(const LinkFindings& findings, std::int32_t ranks, double tolerance);

}  // namespace commfuse::validate
