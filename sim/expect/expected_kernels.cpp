// SPDX-License-Identifier: Apache-2.0
#include "sim/expect/expected_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse::expect {

double rate_of(const ExpectedKernelRow& row, Duration time) {
  const double work = row.gemm ? flops_of(*row.gemm).count : static_cast<double>(row.copied.count);
  return work / to_seconds(time);
}

GemmSize parse_gemm_size(std::string_view text, DType dtype) {
  constexpr std::int64_t limit = std::int64_t{1} << 24U;
  std::array<std::int64_t, 3> extents{};
  std::string_view rest = text;
  bool is_valid = true;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::size_t end = i + 1 < extents.size() ? rest.find('x') : rest.size();
    if (end == std::string_view::npos) {
      is_valid = false;
      break;
    }
    const auto extent = parse_count(rest.substr(0, end));
    is_valid = is_valid && extent && *extent >= 1 && *extent <= limit;
    extents[i] = is_valid ? *extent : 1;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!is_valid) {
    throw ConfigError(
        fmt::format("--gemm: {} is not a GEMM; write m, n and k up to 16M, as in 4096x8192x8192", in_quotes(text)));
  }
  GemmSize size{.m = extents[0], .n = extents[1], .k = extents[2], .dtype = dtype};
  if (dtype == DType::fp8) {
    size.out = DType::bf16;  // frameworks write bf16
  }
  return size;
}

std::vector<ExpectedKernelRow> expected_kernels(const Machine& machine, const KernelQuestion& question) {
  constexpr std::int64_t limit = std::int64_t{1} << 40U;
  const KernelExpectation expectation(machine);
  std::vector<ExpectedKernelRow> rows;
  for (const GemmSize& size : question.gemms) {
    if (!machine.accelerator.matrix_units[index_of(size.dtype)]) {
      throw ConfigError(fmt::format("--dtype: {} does not support GEMMs in {}; use another dtype", machine.name,
                                    name_of(size.dtype)));
    }
    const ExpectedKernel expected = expectation.gemm(size);
    rows.push_back({size, {}, expected.time, range_of(expected, question.false_alarms), expected.limit});
  }
  for (const Bytes copied : question.copies) {
    if (copied.count < 1 || copied.count > limit) {
      throw ConfigError(fmt::format("--copy: {} cannot be copied; use 1 B to 1 TiB", format_size(copied)));
    }
    const ExpectedKernel expected = expectation.copy(copied);
    rows.push_back({{}, copied, expected.time, range_of(expected, question.false_alarms), expected.limit});
  }
  return rows;
}

}  // namespace commfuse::expect
