// SPDX-License-Identifier: Apache-2.0
// What was measured on one machine, gathered from files: tables of products, attention, memory-bound
// kernels and messages, and what
// nccl-tests prints.
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
  Measurements<ObservedCollective> collectives;
  Measurements<ObservedExchange> peers;
  std::vector<std::string> faults;   ///< `path:line: reason` of rows that are wrong; they are left out.
  std::vector<std::string> skipped;  ///< Sentences about what is right but not of one node, or of no use here.
};

/// Kinds are told by a table's header as `commfuse-sim score` does, everything else is read as
/// nccl-tests' text or JSON. Where a table says which machine a row is of, all rows must be of one; `machine` chooses.
/// Throws ConfigError for a file that is none of these or cannot be read.
Observations read_observations(const std::vector<std::filesystem::path>& files,
                               const std::optional<std::string>& machine);

}  // namespace commfuse::calibrate
