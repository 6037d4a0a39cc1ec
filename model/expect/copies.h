// SPDX-License-Identifier: Apache-2.0
// Decides whether copies between the GPUs of a node, and between its host and its GPUs, run at the rates of healthy
// wires, and names the GPU or pair of GPUs that does not.
//
// Every copy is judged by ln(expected rate / measured rate):
//
//   off_i = fault_i + shared n + own_i e_i      n and e_i normal
//
// `shared` is the error of the share of its wires that a copy is assumed to get; `own` is the spread between healthy
// copies of one node. Faults are patterns of fault_i: all copies, those of one GPU, those of one pair, each at several
// degrees. Odds and false alarms are those of evidence.h. docs/decisions/0070 says where the errors come from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/expect/faults.h"
#include "model/expect/judge.h"
#include "model/hardware/machine.h"

namespace commfuse {

/// The rate of one copy. GPUs count from 0 on; `from` and `to` are the ends in the table's order, which need not be
/// the direction of the bytes.
struct MeasuredCopy {
  int from = 0;  ///< A GPU, or host_side.
  int to = 0;
  BytesPerSecond rate;
};
inline constexpr int host_side = -1;

/// Copies that one test timed, one at a time and in one direction.
struct CopyTable {
  std::string test;     ///< "device_to_device_memcpy_read_ce"
  bool by_sms = false;  ///< Else by copy engines.
  std::vector<MeasuredCopy> copies;
};

/// A fault that may slow some copies.
struct SuspectedCopies {
  const Fault* fault = nullptr;
  std::string subject;       ///< "GPU 3 – GPU 5", "GPU 3", "all GPUs"
  double probability = 0.0;  ///< Probability that the copies are bad for this reason.
  double rate_share = 1.0;   ///< Median of the measured over the expected rate of its copies.
};

inline constexpr std::string_view copies_between_gpus = "between GPUs";
inline constexpr std::string_view copies_with_host = "between the host and GPUs";

/// One kind of copies of a node.
struct CopyJudgement {
  std::string_view wires;                 ///< One of the two above.
  Health health = Health::undecided;      ///< Healthy only where every GPU was timed.
  double odds = 0.0;                      ///< evidence.h
  double healthy_probability = 1.0;       ///< See Judgement.
  Severity severity = Severity::none;     ///< By the likeliest suspect; none if healthy.
  double rate_share = 1.0;                ///< The likeliest suspect's where bad, else that of all copies.
  std::vector<SuspectedCopies> suspects;  ///< The likeliest first; those above 1%.
  std::size_t copies = 0;                 ///< Number of copies judged.
  BytesPerSecond expected;                ///< Median over the copies.
  BytesPerSecond measured;
};

/// Returns the expected rate of a copy between two GPUs of a node: the share of its slowest wire that healthy copies
/// get. Requires two different GPUs of one node.
BytesPerSecond expected_copy(const Machine& machine, int gpu_a, int gpu_b, bool by_sms);

/// Returns the rate of the wire between the host and a GPU in one direction, as its file has it; 0 if unknown.
BytesPerSecond host_wire(const Machine& machine);

/// Returns the expected rate of a copy between the host and a GPU; 0 if the machine's host wires are unknown. Then GPUs
/// are compared with each other alone.
BytesPerSecond expected_host_copy(const Machine& machine);

/// The rates that all copies of a healthy node keep to, except in a share of nodes.
struct CopyFloors {
  BytesPerSecond between_gpus;  ///< Rate of the slowest pair, by copy engines; 0 if a node has one GPU.
  BytesPerSecond with_host;     ///< 0 if the machine's host wires are not known.
};
/// Requires 0 < false_alarms < 0.5.
CopyFloors copy_floors(const Machine& machine, double false_alarms);

/// Returns one judgement for each kind of copies in the tables: between GPUs first. Ignores copies of GPUs outside of
/// the machine, and copies with a rate of 0. Requires 0 < false_alarms < 0.5, of each kind.
std::vector<CopyJudgement> judge_copies(const Machine& machine, const std::vector<CopyTable>& tables,
                                        double false_alarms);

}  // namespace commfuse
