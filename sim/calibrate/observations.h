// SPDX-License-Identifier: Apache-2.0
// What was measured on one machine, gathered from files: tables of products, attention, memory-bound kernels and
// messages, what nccl-tests prints, profiles of runs, and the micro-benchmarks of commfuse-validate.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "model/fit/attention_fit.h"
#include "model/fit/framework_kernel_fit.h"
#include "model/fit/gemm_fit.h"
#include "model/fit/link_fit.h"
#include "model/fit/memory_bound_fit.h"
#include "model/hardware/machine.h"
#include "model/record/run_record.h"

namespace commfuse::calibrate {

/// Rows of one kind, and the files that they are from: "gemm.csv, more.csv".
template <class Measured>
struct Measurements {
  std::vector<Measured> rows;
  std::string source;
};

/// `op` is the word of the table, or of nccl-tests: part of the key that chooses the held-back rows.
struct ObservedCollective {
  std::string op;
  CollectiveRow row;
};
struct ObservedExchange {
  std::string op;
  PeerRow row;
};

struct Observations {
  std::string machine;                                             ///< As the tables call it; may be empty.
  std::array<Measurements<MeasuredGemm>, all_dtypes.size()> gemm;  ///< By dtype.
  Measurements<MeasuredAttention> attention;
  Measurements<MeasuredFrameworkKernel> kernels;
  Measurements<MeasuredTraffic> traffic;  ///< Copies and adds.
  Measurements<ObservedCollective> collectives;
  Measurements<ObservedExchange> peers;
  Measurements<ObservedCollective> network_collectives;  ///< Over several whole nodes.
  Measurements<ObservedExchange> network_peers;          ///< Of two GPUs on two nodes.
  std::optional<Duration> next_op;                       ///< From an op's end until its lane begins the next one.
  std::optional<Duration> wake_up;                       ///< The same until another lane begins what waited for it.
  bool is_executor = false;          ///< Of an executor: what its rank can do at most is not known but measured.
  std::vector<std::string> faults;   ///< `path:line: reason` of rows that are wrong; they are left out.
  std::vector<std::string> skipped;  ///< Sentences about what is right but not of one node, or of no use here.
};

/// Kinds are told by a table's header as `commfuse-sim score` does, a record of commfuse-validate by its schema, a
/// profile by how it begins; everything else is read as nccl-tests' text or JSON. Where a table says which machine a
/// row is of, all rows must be of one; `machine` chooses. With a `base`, products of tables and profiles more than 5 %
/// above its peak are faults, and so are messages above 1.25 times its links; its nodes tell whether a profiled group
/// is inside one. Throws ConfigError for a file that is none of these, cannot be read or is given twice.
Observations read_observations(const std::vector<std::filesystem::path>& files,
                               const std::optional<std::string>& machine, const Machine* base = nullptr);

/// The micro-benchmarks of a record, each by its median, which `source` is the name of. Throws ConfigError where it has
/// none, or an op that nobody has heard of.
Observations observations_of(const RunRecord& record, const std::string& source);

}  // namespace commfuse::calibrate
