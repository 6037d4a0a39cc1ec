// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/call_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "model/formats/measured_time.h"
#include "model/units.h"

namespace commfuse::calibrate {

namespace {

std::string_view plural_of(const Work& work) {
  if (std::holds_alternative<GemmSize>(work)) {
    return "GEMMs";
  }
  return std::holds_alternative<AttentionSize>(work) ? "attention calls" : "memory-bound kernels";
}

/// Returns whether two kernels overlap for longer than rounding explains. `overlap` and `duration`, the duration of one
/// of the kernels, are in microseconds.
bool is_concurrent(double overlap, double duration) { return overlap > std::min(1.0, 0.5 * duration); }

}  // namespace

std::size_t CallTimes::add_call(Work work, bool runs_kernels) {
  calls_.push_back({std::move(work), runs_kernels});
  return calls_.size() - 1;
}

void CallTimes::add_kernel(std::size_t call, const KernelSpan& span) {
  record_run(span, {.call = call, .kernel = kernels_.size()});
  kernels_.push_back({call, span});
  total_ += span.duration;
}

void CallTimes::record_run(const KernelSpan& span, Run run) {
  run.begin = span.begin;
  run.end = span.begin + span.duration;
  device_[span.device].push_back(run);
}

void CallTimes::add_communication(const KernelSpan& span) {
  record_run(span, {});
  communication_[span.device].push_back({span.begin, span.begin + span.duration});
  total_ += span.duration;
}

void CallTimes::add_unusable_communication(const KernelSpan& span, const std::string& why) {
  communication_[span.device].push_back({span.begin, span.begin + span.duration});
  add_unusable_kernel(span, why);
}

void CallTimes::add_other_kernel(const KernelSpan& span, std::string_view op) {
  auto entry = others_.find(op);
  if (entry == others_.end()) {
    entry = others_.emplace(op, KernelTotals{}).first;
  }
  ++entry->second.count;
  entry->second.duration += span.duration;
  record_run(span, {});
  total_ += span.duration;
}

void CallTimes::add_unusable_kernel(const KernelSpan& span, const std::string& why) {
  KernelTotals& totals = unusable_[why];
  ++totals.count;
  totals.duration += span.duration;
  record_run(span, {});
  total_ += span.duration;
}

Profile CallTimes::profile() && {
  for (auto& [device, busy] : communication_) {
    std::sort(busy.begin(), busy.end(), [](const Busy& a, const Busy& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < busy.size(); ++i) {
      busy[i].end = std::max(busy[i].end, busy[i - 1].end);
    }
  }
  find_disturbed();
  std::stable_sort(kernels_.begin(), kernels_.end(), [](const Kernel& a, const Kernel& b) { return a.call < b.call; });
  const Kernel* next = kernels_.data();
  const Kernel* const end = next + kernels_.size();
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const Kernel* const first = next;
    while (next != end && next->call == i) {
      ++next;
    }
    add(calls_[i], first, next);
  }
  report_skipped_kernels();
  return std::move(profile_);
}

void CallTimes::find_disturbed() {
  for (auto& [device, runs] : device_) {
    std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.begin < b.begin; });
    Run latest{.begin = 0.0, .end = -std::numeric_limits<double>::infinity()};  // the earlier run that ends last
    Run second = latest;  // the earlier run of another call that ends last
    for (std::size_t at = 0; at < runs.size(); ++at) {
      const Run& run = runs[at];
      if (run.kernel != none) {
        Kernel& kernel = kernels_[run.kernel];
        const double before = latest.call == run.call ? second.end : latest.end;
        kernel.is_disturbed = is_concurrent(std::min(before, run.end) - run.begin, kernel.span.duration) ||
                              is_disturbed_by_later(runs, at);
      }
      if (run.end > latest.end) {
        second = run.call == latest.call ? second : latest;
        latest = run;
      } else if (run.call != latest.call && run.end > second.end) {
        second = run;
      }
    }
  }
}

/// `runs` must be sorted by `begin`. A run during which very many other runs begin counts as disturbed, however short
/// those runs are.
bool CallTimes::is_disturbed_by_later(const std::vector<Run>& runs, std::size_t at) {
  constexpr std::size_t max_later = 64;
  const Run& run = runs[at];
  for (std::size_t later = at + 1; later < runs.size() && runs[later].begin < run.end; ++later) {
    const Run& other = runs[later];
    const bool is_other = other.call != run.call;
    if (later - at > max_later ||
        (is_other && is_concurrent(std::min(other.end, run.end) - other.begin, run.end - run.begin))) {
      return true;
    }
  }
  return false;
}

void CallTimes::add(const Call& call, const Kernel* first, const Kernel* last) {
  const auto skip = [&](std::string sentence) { ++profile_.skipped[std::move(sentence)]; };
  if (first == last) {
    if (call.runs_kernels) {
      skip("GEMMs without a kernel");
    }
    return;
  }
  if (const auto* const unfitted = std::get_if<Unfitted>(&call.work)) {
    return skip(unfitted->why);
  }
  double time = 0.0;
  bool is_disturbed = false;
  for (const Kernel* kernel = first; kernel != last; ++kernel) {
    if (is_slowed(kernel->span)) {
      return skip(fmt::format("{} concurrent with communication, which slows them", plural_of(call.work)));
    }
    time += kernel->span.duration;
    is_disturbed = is_disturbed || kernel->is_disturbed;
  }
  if (is_disturbed) {
    return skip(
        fmt::format("{} concurrent with another kernel on their device, which slows them", plural_of(call.work)));
  }
  if (!is_measured_time(time)) {
    return skip(fmt::format("{} with times outside 1 ps to 1e5 s", plural_of(call.work)));
  }
  const Duration duration = from_seconds(1e-6 * time);
  if (const auto* const gemm = std::get_if<GemmSize>(&call.work)) {
    profile_.gemms.push_back({*gemm, duration});
  } else if (const auto* const attention = std::get_if<AttentionSize>(&call.work)) {
    profile_.attention.push_back({*attention, duration});
  } else if (const auto* const kernel = std::get_if<KernelCall>(&call.work)) {
    profile_.kernels.push_back({kernel->op, kernel->size, duration});
  }
}

/// Only busy times that begin before the span ends matter, and of these only the one that ends last.
bool CallTimes::is_slowed(const KernelSpan& span) const {
  const auto device = communication_.find(span.device);
  if (device == communication_.end()) {
    return false;
  }
  const std::vector<Busy>& busy = device->second;
  const auto after = std::lower_bound(busy.begin(), busy.end(), span.begin + span.duration,
                                      [](const Busy& interval, double end) { return interval.begin < end; });
  return after != busy.begin() && std::prev(after)->end > span.begin;
}

std::string CallTimes::share(double duration) const {
  const double percent = total_ > 0.0 ? 100.0 * duration / total_ : 0.0;
  return percent < 1.0 ? "less than 1% of the kernel time" : fmt::format("{:.0f}% of the kernel time", percent);
}

void CallTimes::report_skipped_kernels() {
  for (const auto& [why, totals] : unusable_) {
    profile_.skipped[fmt::format("{} ({})", why, share(totals.duration))] += totals.count;
  }
  if (others_.empty()) {
    return;
  }
  constexpr std::size_t max_named = 3;
  std::vector<std::pair<double, std::string_view>> longest;
  KernelTotals total;
  for (const auto& [op, totals] : others_) {
    longest.emplace_back(-totals.duration, op);
    total.count += totals.count;
    total.duration += totals.duration;
  }
  std::sort(longest.begin(), longest.end());
  std::string names;
  for (std::size_t i = 0; i < std::min(max_named, longest.size()); ++i) {
    names += (i > 0 ? ", " : "") + std::string(longest[i].second);
  }
  const std::size_t more = longest.size() - std::min(max_named, longest.size());
  profile_.skipped[fmt::format("kernels of operators without a fit: {}{} ({})", names,
                               more > 0 ? fmt::format(" and {} more", more) : "", share(total.duration))] +=
      total.count;
}

}  // namespace commfuse::calibrate
