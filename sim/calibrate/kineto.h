// SPDX-License-Identifier: Apache-2.0
// Traces of PyTorch's profiler (Kineto) as measurements: products and NCCL's collectives, with the sizes that the trace
// says beside them. Plain or gzipped; read in one pass, however large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/fit/gemm_fit.h"

namespace commfuse::calibrate {

/// One size, by its shortest time: of a collective, the others wait in its kernel for whoever comes last.
struct TracedCollective {
  std::string op;  ///< As nccl-tests calls it: all_gather, reduce_scatter, all_reduce, alltoall.
  int ranks = 0;
  std::int64_t bytes = 0;  ///< As nccl-tests counts them.
  double time_us = 0.0;
  std::vector<std::int64_t> members{};  ///< Ranks of the group, as far as the trace names them.
};

struct KinetoTrace {
  std::vector<MeasuredGemm> products;         ///< aten::mm and aten::addmm, each call
  std::vector<TracedCollective> collectives;  ///< by op, members and bytes
  /// Sentences about what is of no use, and how often.
  std::map<std::string, std::size_t> skipped;
};

/// By how it begins.
bool is_kineto_trace(const std::filesystem::path& path);

/// Products that ran beside a collective of the same GPU are left out: they were slowed. Throws ConfigError where the
/// file cannot be read, is cut off, or is no such trace.
KinetoTrace read_kineto(const std::filesystem::path& path);

}  // namespace commfuse::calibrate
