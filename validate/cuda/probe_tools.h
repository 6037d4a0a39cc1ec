// SPDX-License-Identifier: Apache-2.0
// Helpers that the probes share: timing, and matrices in device memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "validate/cuda/probes.h"

namespace commfuse::validate::probing {

using Micros = std::chrono::duration<double, std::micro>;

std::string number(std::int64_t value);
/// The rows of a stage, each of which is also given to options.on_row.
class ProbeRows {
 public:
  /// `options` must outlive the rows.
  explicit ProbeRows(const ProbeOptions& options) : options_(options) {}
  void push_back(ProbeRow row);
  [[nodiscard]] std::vector<ProbeRow> take() { return std::move(rows_); }

 private:
  const ProbeOptions& options_;
  std::vector<ProbeRow> rows_;
};

/// Throws std::runtime_error if the device does not finish within 30 s.
void finish(Device& device);
/// Returns the device's time for the work that `issue` gives to streams, measured on the first stream. The gate opens
/// once all work is issued. Requires that the same work was issued without a gate before.
Micros behind_gate(Device& device, const std::function<void()>& issue);
/// Issues work without a gate, because kernels, memory and connections that are made on first use cannot be made behind
/// a gate.
void run_without_gate(Device& device, const std::function<void()>& issue);
/// Returns samples of `once`, after one call that is not counted.
std::vector<double> sampled(const ProbeOptions& options, const std::function<Micros()>& once);
/// Returns samples of behind_gate(), divided by `parts`, after one run without a gate and one sample that is not
/// counted.
std::vector<double> gated_samples(Device& device, const ProbeOptions& options, const std::function<void()>& issue,
                                  int parts = 1);

/// Runs work under a trace, without a gate, and returns its spans. Requires that the same work was issued before.
/// Without a tracer, returns none and writes the reason to stderr.
std::vector<DeviceSpan> spans_if_traced(Device& device, const std::function<void()>& issue);

/// Returns the number of sets of matrices to alternate between, so that no GEMM finds its factors in the
/// second-level cache. A GEMM touches `bytes`, and all sets together are more than twice the size of the cache. At
/// most 64, so factors of small GEMMs may stay in the cache.
std::size_t turns_for(Device& device, Bytes bytes);

/// `turns` filled matrices of one size in device memory. at() accepts any turn and cycles through them.
class Matrices {
 public:
  static constexpr std::size_t usual_turns = 3;
  Matrices(Device& device, std::int64_t rows, std::int64_t columns, DType dtype, std::size_t turns = usual_turns);
  [[nodiscard]] Panel at(std::size_t turn) const;

 private:
  Panel panel_;
  std::int64_t stride_;
  std::size_t turns_;
  Allocation memory_;
};

/// The probe stages `attention` and `fused`.
std::vector<ProbeRow> probe_attention(Device& device, const ProbeOptions& options);
std::vector<ProbeRow> probe_fused_attention(Device& device, const ProbeOptions& options);

}  // namespace commfuse::validate::probing
