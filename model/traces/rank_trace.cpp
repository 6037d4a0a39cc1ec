// SPDX-License-Identifier: Apache-2.0
#include "model/traces/rank_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "model/config_error.h"
#include "model/json_budget.h"
#include "model/text/quantity.h"
#include "model/traces/kineto_events.h"

namespace commfuse {

namespace {

using nlohmann::json;

constexpr std::size_t max_kept = std::size_t{1} << 23U;  // about a gigabyte; a step has 1e5 kernels

struct Span {
  double begin = 0.0;
  double end = 0.0;
};

struct Kernel {
  Span span;
  enum class Kind { compute, communication, copy } kind = Kind::compute;
  std::string group{};
};

std::string text_in(const json& object, const char* key) {
  const auto member = object.find(key);
  return member == object.end() ? "" : member->is_string() ? member->get<std::string>() : member->dump();
}

std::optional<double> number_in(const json& object, const char* key) {
  const auto member = object.find(key);
  const std::optional<double> number = member == object.end() ? std::nullopt
                                       : member->is_number()  ? std::optional(member->get<double>())
                                       : member->is_string()  ? parse_number(member->get_ref<const std::string&>())
                                                              : std::nullopt;
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
  return text;
}

/// Returns the N of "ProfilerStep#N"; nullopt for another name.
std::optional<std::int64_t> step_named(const std::string& name) {
  constexpr std::string_view mark = "ProfilerStep#";
  return name.starts_with(mark) ? parse_integer(std::string_view(name).substr(mark.size())) : std::nullopt;
}

bool is_communication(const std::string& name, const json& args) {
  const std::string lower_name = lower(name);
  return args.contains("Collective name") || lower_name.find("nccl") != std::string::npos ||
         lower_name.find("rccl") != std::string::npos;
}

/// Returns the time that at least one of the spans covers. Sorts the spans.
double covered(std::vector<Span>& spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  double sum = 0.0;
  double until = -1e300;
  for (const Span& span : spans) {
    sum += std::max(0.0, span.end - std::max(span.begin, until));
    until = std::max(until, span.end);
  }
  return sum;
}

class Collector {
 public:
  explicit Collector(std::string path) : path_(std::move(path)) {}

  void take(const json& event) {
    const std::optional<double> begin = number_in(event, "ts");
    const std::optional<double> duration = number_in(event, "dur");
    if (text_in(event, "ph") != "X" || !begin || !duration || *duration < 0.0) {
      return;
    }
    const Span span{*begin, *begin + *duration};
    const std::string category = lower(text_in(event, "cat"));
    const std::string name = text_in(event, "name");
    if (category == "kernel") {
      take_kernel(event, name, span);
    } else if (category == "gpu_memcpy" || category == "gpu_memset" || category == "memcpy" || category == "memset") {
      keep({span, Kernel::Kind::copy});
    } else if (const std::optional<std::int64_t> step = step_named(name)) {
      std::map<std::int64_t, Span>& steps = category == "gpu_user_annotation" ? gpu_steps_ : host_steps_;
      const auto [entry, is_new] = steps.emplace(*step, span);
      if (!is_new) {  // the step has a span on every stream
        entry->second = {std::min(entry->second.begin, span.begin), std::max(entry->second.end, span.end)};
      }
    }
  }

  void take_distributed(std::string_view key, const json& value) {
    if (key == "rank") {
      rank_ = whole_number(value);
    }
  }

  RankTrace trace() && {
    if (kernels_.empty()) {
      throw ConfigError(fmt::format("{}: has no kernel; trace with ProfilerActivity.CUDA", path_));
    }
    std::stable_sort(kernels_.begin(), kernels_.end(),
                     [](const Kernel& a, const Kernel& b) { return a.span.begin < b.span.begin; });
    for (const Kernel& kernel : kernels_) {
      latest_ends_.push_back(latest_ends_.empty() ? kernel.span.end : std::max(latest_ends_.back(), kernel.span.end));
    }
    // The GPU lags behind the host, so steps that were recorded on the GPU are preferred.
    std::map<std::int64_t, Span> steps = gpu_steps_.empty() ? host_steps_ : gpu_steps_;
    if (steps.empty()) {
      steps[0] = {kernels_.front().span.begin, latest_ends_.back()};
    }
    RankTrace trace{.rank = rank_, .steps = {}, .calls = {}};
    for (const auto& [step, span] : steps) {
      if (span.end > span.begin) {
        add_step(step, span, trace);
      }
    }
    return trace;
  }

 private:
  void keep(Kernel kernel) {
    if (kernels_.size() >= max_kept) {
      throw ConfigError(fmt::format("{}: more than {} kernels and copies; trace fewer steps", path_, max_kept));
    }
    kernels_.push_back(std::move(kernel));
  }

  void take_kernel(const json& event, const std::string& name, const Span& span) {
    static const json no_arguments = json::object();
    const auto arguments = event.find("args");
    const json& args = arguments != event.end() && arguments->is_object() ? *arguments : no_arguments;
    if (!is_communication(name, args)) {
      keep({span, Kernel::Kind::compute});
      return;
    }
    const std::string collective = text_in(args, "Collective name");
    keep({span, Kernel::Kind::communication,
          collective.empty() ? name
                             : fmt::format("{} {} {} {}", collective, text_in(args, "Process Group Name"),
                                           text_in(args, "Process Group Ranks"), text_in(args, "In msg nelems"))});
  }

  void add_step(std::int64_t step, const Span& within, RankTrace& trace) const {
    const auto first = std::lower_bound(kernels_.begin(), kernels_.end(), within.begin,
                                        [](const Kernel& kernel, double at) { return kernel.span.begin < at; });
    std::vector<Span> compute;
    std::vector<Span> communication;
    std::vector<Span> busy;
    if (first != kernels_.begin()) {  // Work of an earlier step may still run.
      const double end = latest_ends_[static_cast<std::size_t>(first - kernels_.begin()) - 1];
      busy.push_back({within.begin, std::clamp(end, within.begin, within.end)});
    }
    for (auto kernel = first; kernel != kernels_.end() && kernel->span.begin < within.end; ++kernel) {
      busy.push_back({kernel->span.begin, std::min(kernel->span.end, within.end)});
      if (kernel->kind == Kernel::Kind::communication) {
        communication.push_back(kernel->span);
        trace.calls.push_back({kernel->group, step, kernel->span.end - kernel->span.begin});
      } else if (kernel->kind == Kernel::Kind::compute) {
        compute.push_back(kernel->span);
      }
    }
    const double time = within.end - within.begin;
    trace.steps.push_back({.step = step,
                           .time_us = time,
                           .compute_us = covered(compute),
                           .communication_us = covered(communication),
                           .idle_us = std::max(0.0, time - covered(busy))});
  }

  std::string path_;
  std::optional<std::int64_t> rank_;
  std::vector<Kernel> kernels_;
  std::vector<double> latest_ends_;  ///< For each kernel, the latest end among the kernels up to it.
  std::map<std::int64_t, Span> gpu_steps_;
  std::map<std::int64_t, Span> host_steps_;
};

}  // namespace

RankTrace read_rank_trace(const std::filesystem::path& path) {
  Collector collector(path.string());
  visit_kineto(
      path, {.event = [&](const json& event) { collector.take(event); },
             .distributed = [&](std::string_view key, const json& value) { collector.take_distributed(key, value); }});
  return std::move(collector).trace();
}

}  // namespace commfuse
