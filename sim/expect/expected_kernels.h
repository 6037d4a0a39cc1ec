// SPDX-License-Identifier: Apache-2.0
// Expected rates of GEMMs and HBM copies on one GPU of a machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/expect/kernel_expectation.h"

namespace commfuse::expect {

struct ExpectedKernelRow {
  std::optional<GemmSize> gemm;  ///< Empty for a copy.
  Bytes copied;                  ///< Size of a copy.
  Duration time{};
  ExpectedRange range;
  Limit limit = Limit::compute;
};

/// Returns FLOP/s for a GEMM and bytes copied per second for a copy.
double rate_of(const ExpectedKernelRow& row, Duration time);

/// Parses "4096x8192x8K" as m x n x k. Throws ConfigError for any other string, and for extents above 16M.
GemmSize parse_gemm_size(std::string_view text, DType dtype);

struct KernelQuestion {
  std::vector<GemmSize> gemms;
  std::vector<Bytes> copies;
  double false_alarms = 0.01;
};

/// Throws ConfigError for a dtype that the machine lacks, and for a copy below 1 B or above 1 TiB.
std::vector<ExpectedKernelRow> expected_kernels(const Machine& machine, const KernelQuestion& question);

}  // namespace commfuse::expect
