// SPDX-License-Identifier: Apache-2.0
// Decides whether copies between the GPUs of a node, and between its host and its GPUs, run at the rates of healthy
// wires, and names the GPU or pair of GPUs whose copies do not.
//
// Every copy is judged by ln(expected rate / measured rate):
//
//   off_i = fault_i + shared n + own_i e_i      n and e_i normal
//
// `shared` is the error of the assumed share of the wires' rate that a copy gets; `own` is the spread between healthy
// copies of one node. Faults are patterns of fault_i: in all copies, in the copies of one GPU, or in the copies of one
// pair in one or both directions, each at several degrees. Odds and false alarms are defined as in evidence.h.
// docs/decisions/0070 states where the errors come from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/expect/faults.h"
#include "model/expect/judge.h"
#include "model/hardware/machine.h"

namespace commfuse {

/// The rate of one copy. GPUs are numbered from 0; `from` and `to` are the ends in the table's order, which may differ
/// from the direction of the bytes.
struct MeasuredCopy {
  int from = 0;  ///< A GPU, or host_side.
  int to = 0;
  BytesPerSecond rate;
};
inline constexpr int host_side = -1;

/// Copies that one test timed, one at a time and in one direction.
struct CopyTable {
  std::string test;     ///< "device_to_device_memcpy_read_ce"
  bool by_sms = false;  ///< True if SMs move the data; otherwise copy engines do.
  std::vector<MeasuredCopy> copies;
};

/// A fault that may slow some copies.
struct SuspectedCopies {
  const Fault* fault = nullptr;
  std::string subject;       ///< "GPU 3 – GPU 5", "GPU 3", "all GPUs"
  double probability = 0.0;  ///< Probability that the copies are slow because of this fault.
  double rate_share = 1.0;   ///< Median of measured rate / expected rate over its copies.
};

inline constexpr std::string_view copies_between_gpus = "between GPUs";
inline constexpr std::string_view copies_with_host = "between the host and GPUs";

/// Judgement of a node's copies of one kind.
struct CopyJudgement {
  std::string_view wires;  ///< One of the two constants above.
  /// Healthy only if every pair of GPUs was timed, or every GPU with the host over wires of known rate.
  Health health = Health::undecided;
  double odds = 0.0;                      ///< See evidence.h.
  double healthy_probability = 1.0;       ///< See Judgement.
  Severity severity = Severity::none;     ///< From the likeliest suspect; none unless bad.
  double rate_share = 1.0;                ///< The likeliest suspect's rate_share if bad, otherwise that of all copies.
  std::vector<SuspectedCopies> suspects;  ///< Suspects above 1%, the likeliest first.
  std::size_t copies = 0;                 ///< Number of copies judged.
  BytesPerSecond expected;                ///< Median over the copies; equals `measured` if the host wires are unknown.
  BytesPerSecond measured;
};

/// Returns the expected rate of a copy between two GPUs of a node: the rate of its slowest wire times the share of that
/// rate that healthy copies reach. Requires `gpu_a` and `gpu_b` to be different GPUs of one node.
BytesPerSecond expected_copy(const Machine& machine, int gpu_a, int gpu_b, bool by_sms);

/// Returns the rate of the wire between the host and a GPU in one direction, from the machine's file; 0 if unknown.
BytesPerSecond host_wire(const Machine& machine);

/// Returns the expected rate of a copy between the host and a GPU; 0 if the machine's host wires are unknown. Then GPUs
/// are compared only with each other.
BytesPerSecond expected_host_copy(const Machine& machine);

/// The rates that all copies of a healthy node reach, except on a share `false_alarms` of healthy nodes.
struct CopyFloors {
  BytesPerSecond between_gpus;  ///< Rate of the slowest pair, by copy engines; 0 if a node has one GPU.
  BytesPerSecond with_host;     ///< 0 if the machine's host wires are unknown.
};
/// Returns the floors. Requires 0 < false_alarms < 0.5.
CopyFloors copy_floors(const Machine& machine, double false_alarms);

/// Returns one judgement for each kind of copies in the tables; copies between GPUs come first. Ignores copies of GPUs
/// that the machine does not have, and copies with a rate of 0. `false_alarms` applies to each kind. Requires 0 <
/// false_alarms < 0.5.
std::vector<CopyJudgement> judge_copies(const Machine& machine, const std::vector<CopyTable>& tables,
                                        double false_alarms);

}  // namespace commfuse
