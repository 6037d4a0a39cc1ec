// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/device_timeline.h"

#include <algorithm>
#include <chrono>
#include <map>

namespace commfuse::validate {

namespace {

struct KernelSpan {
  std::int64_t begin = 0;  // nanoseconds of the device's clock
  std::int64_t end = 0;
};

/// Returns time zero, as device_timeline() defines it.
std::int64_t release_of(std::span<const DeviceSpan> spans) {
  for (const std::uint64_t label : {align_label, gate_label}) {
    const auto span = std::ranges::find(spans, label, &DeviceSpan::label);
    if (span != spans.end()) {
      return span->end;
    }
  }
  return spans.empty() ? 0 : std::ranges::min(spans, {}, &DeviceSpan::begin).begin;
}

}  // namespace

Timeline device_timeline(std::span<const DeviceSpan> spans, std::span<const std::vector<OpHere>> ops, int iterations) {
  std::vector<std::vector<KernelSpan>> by_step(ops.size());
  for (const DeviceSpan& span : spans) {
    if (span.label >= first_step_label && span.label - first_step_label < by_step.size()) {
      by_step[span.label - first_step_label].push_back({span.begin, span.end});
    }
  }
  std::map<OpHere, KernelSpan> op_spans;  // sorted by rank, then op
  for (std::size_t step = 0; step < by_step.size(); ++step) {
    std::vector<KernelSpan>& kernels = by_step[step];
    std::ranges::sort(kernels, {}, &KernelSpan::begin);
    for (const KernelSpan& kernel : std::span(kernels).last(kernels.size() / static_cast<std::size_t>(iterations))) {
      for (const OpHere& op : ops[step]) {
        const auto [entry, first] = op_spans.emplace(op, kernel);
        if (!first) {
          entry->second = {std::min(entry->second.begin, kernel.begin), std::max(entry->second.end, kernel.end)};
        }
      }
    }
  }
  const std::int64_t release = release_of(spans);
  const auto since_release = [&](std::int64_t when) {
    return Instant(std::chrono::nanoseconds(std::max<std::int64_t>(when - release, 0)));
  };
  Timeline timeline;
  for (const auto& [op, kernel] : op_spans) {
    timeline.push_back({op.first, op.second, since_release(kernel.begin), since_release(kernel.end)});
  }
  return timeline;
}

}  // namespace commfuse::validate
