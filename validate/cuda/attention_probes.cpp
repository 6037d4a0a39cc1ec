// SPDX-License-Identifier: Apache-2.0
// Probes attention of query slices: how long it takes, and how much cuDNN's results differ from cuBLASLt's.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>

#include "validate/cuda/probe_tools.h"
#include "validate/reference/rounding.h"

namespace commfuse::validate::probing {

namespace {

constexpr std::int64_t head = 128;
constexpr std::int64_t heads = 8;
constexpr std::int64_t kv_heads = 1;
constexpr AttentionLayout layout{
    .qkv = (heads + 2 * kv_heads) * head, .out = heads * head, .head = head, .batch = 1, .causal = true};

/// The last slice of the queries, which sees the most keys.
struct Slice {
  std::int64_t keys = 0;
  std::int64_t slices = 1;
  bool causal = true;

  [[nodiscard]] std::int64_t queries() const { return keys / slices; }
};

std::vector<Slice> slices_of(const ProbeOptions& options, const std::vector<std::int64_t>& usual,
                             const std::vector<std::int64_t>& cuts) {
  const std::vector<std::int64_t> quick{4096};
  const std::vector<std::int64_t>& lengths = !options.lengths.empty() ? options.lengths : options.quick ? quick : usual;
  std::vector<Slice> slices;
  for (const std::int64_t keys : lengths) {
    for (const std::int64_t cut : cuts) {
      slices.push_back({keys, cut, true});
      slices.push_back({keys, cut, false});
    }
  }
  return slices;
}

AttentionCall call_of(const Slice& slice, const Panel& qkv, const Panel& out, AttentionKernel kernel) {
  AttentionCall call{.layout = layout, .sum_order = SumOrder::blocked, .kernel = kernel, .keys = qkv};
  call.layout.causal = slice.causal;
  AttentionCall::Part part{.queries = qkv, .first_row = slice.keys - slice.queries(), .out = out};
  part.queries.rows = part.out.rows = slice.queries();
  part.queries.at += static_cast<Address>(part.first_row * layout.qkv * bytes_of(DType::bf16));
  call.parts.push_back(part);
  return call;
}

ProbeRow row_of(std::string probe, const Slice& slice, std::string kernel) {
  return {.probe = std::move(probe),
          .parameters = {{"queries", number(slice.queries())},
                         {"keys", number(slice.keys)},
                         {"heads", number(heads)},
                         {"kv_heads", number(kv_heads)},
                         {"head", number(head)},
                         {"causal", slice.causal ? "yes" : "no"},
                         {"kernel", std::move(kernel)}}};
}

std::vector<double> timed(Device& device, const ProbeOptions& options, const AttentionCall& call) {
  return gated_samples(device, options, [&] { device.driver().attend(device.stream(0, false), call); });
}

std::vector<float> downloaded(Device& device, const Panel& panel) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(panel.bytes().count));
  device.driver().download(bytes, panel.at);
  std::vector<float> values(static_cast<std::size_t>(panel.rows * panel.columns));
  decode(panel.dtype, bytes, values);
  return values;
}

/// Returns the largest relative difference of any row: the root mean square of the row's differences, divided by that
/// of its expected values.
double difference(const std::vector<float>& actual, const std::vector<float>& expected) {
  double worst = 0.0;
  for (std::size_t row = 0; row < actual.size(); row += static_cast<std::size_t>(layout.out)) {
    double squared_error = 0.0;
    double squared_value = 0.0;
    for (std::size_t i = row; i < row + static_cast<std::size_t>(layout.out); ++i) {
      const double value = static_cast<double>(expected[i]);
      const double error = static_cast<double>(actual[i]) - value;
      squared_error += error * error;
      squared_value += value * value;
    }
    worst = std::max(worst, std::isfinite(squared_error) ? std::sqrt(squared_error / squared_value) : INFINITY);
  }
  return worst;
}

}  // namespace

std::vector<ProbeRow> probe_attention(Device& device, const ProbeOptions& options) {
  ProbeRows rows(options);
  for (const Slice& slice : slices_of(options, {2048, 4096, 8192}, {1, 2, 4, 8})) {
    const Matrices qkv(device, slice.keys, layout.qkv, DType::bf16);
    const Matrices out(device, slice.keys, layout.out, DType::bf16);
    ProbeRow row = row_of("attention", slice, "cublaslt");
    row.samples = timed(device, options, call_of(slice, qkv.at(0), out.at(0), AttentionKernel::cublaslt));
    rows.push_back(std::move(row));
  }
  return rows.take();
}

/// If cuDNN cannot compute a slice, a row with share 0 ends the probe, and stderr states the reason.
std::vector<ProbeRow> probe_fused_attention(Device& device, const ProbeOptions& options) {
  ProbeRows rows(options);
  for (const Slice& slice : slices_of(options, {4096, 8192}, {1, 4})) {
    const Matrices qkv(device, slice.keys, layout.qkv, DType::bf16);
    const Matrices out(device, slice.keys, layout.out, DType::bf16);
    const AttentionCall unfused = call_of(slice, qkv.at(0), out.at(0), AttentionKernel::cublaslt);
    const AttentionCall fused = call_of(slice, qkv.at(0), out.at(1), AttentionKernel::cudnn);
    ProbeRow by_cudnn = row_of("fused_attention", slice, "cudnn");
    try {
      by_cudnn.samples = timed(device, options, fused);
    } catch (const NoFusedAttention& error) {
      fmt::print(stderr, "{}\n", error.what());
      rows.push_back({.probe = "fused_attention", .unit = "share", .samples = {0.0}});
      return rows.take();
    }
    ProbeRow by_cublaslt = row_of("fused_attention", slice, "cublaslt");
    by_cublaslt.samples = timed(device, options, unfused);
    ProbeRow difference_row = row_of("fused_difference", slice, "cudnn");
    difference_row.unit = "share";
    difference_row.samples = {
        difference(downloaded(device, fused.parts.front().out), downloaded(device, unfused.parts.front().out))};
    for (ProbeRow* row : {&by_cudnn, &by_cublaslt, &difference_row}) {
      rows.push_back(std::move(*row));
    }
  }
  return rows.take();
}

}  // namespace commfuse::validate::probing
