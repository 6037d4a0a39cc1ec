// SPDX-License-Identifier: Apache-2.0
// Fields: pytorch/kineto, libkineto/src/output_json.cpp, and for older versions
// tb_plugin/torch_tb_profiler/profiler/trace.py; lists that are cut after 30 ranks: pytorch/pytorch,
// torch/csrc/profiler/util.h (format_list).
//
// Ignored: python_function, user_annotation and gpu_user_annotation (every kernel that they launch is also launched by
// an operator), cuda_sync and overhead (they wait), cpu_instant_event, fwdbwd flows, and the metadata of threads.
#include "sim/calibrate/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config_error.h"
#include "model/formats/measured_time.h"
#include "model/json_budget.h"
#include "model/text/suggest.h"
#include "model/traces/kineto_events.h"
#include "sim/calibrate/call_times.h"
#include "sim/calibrate/host_ranges.h"
#include "sim/calibrate/operators.h"
#include "sim/score/row.h"

namespace commfuse::calibrate {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Returns the number at `key`, which may be a string; nothing if it is missing or not finite.
std::optional<double> number_in(const json& object, const char* key) {
  const auto member = object.find(key);
  if (member == object.end()) {
    return std::nullopt;
  }
  if (member->is_number()) {
    return member->get<double>();
  }
  if (!member->is_string()) {
    return std::nullopt;
  }
  const std::string& text = member->get_ref<const std::string&>();
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(number) ? std::optional(number)
                                                                                           : std::nullopt;
}

std::string text_in(const json& object, const char* key) {
  const auto member = object.find(key);
  return member != object.end() && member->is_string() ? member->get<std::string>() : std::string{};
}

std::optional<std::int64_t> whole_number_in(const json& object, const char* key) {
  const auto member = object.find(key);
  if (member == object.end() || !member->is_string()) {
    return member != object.end() ? whole_number(*member) : std::nullopt;
  }
  const std::string& text = member->get_ref<const std::string&>();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// PyTorch before 1.12 writes the key of a kernel in lower case.
std::optional<std::int64_t> external_id(const json& args) {
  const std::optional<std::int64_t> id = whole_number_in(args, "External id");
  return id ? id : whole_number_in(args, "external id");
}

/// Returns the name of a process or thread; 12 and "12" are the same name.
std::string name_in(const json& event, const char* key) {
  const auto member = event.find(key);
  return member == event.end() ? std::string{} : member->is_string() ? member->get<std::string>() : member->dump();
}

std::string thread_of(const json& event) { return name_in(event, "pid") + "/" + name_in(event, "tid"); }

std::string in_lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  return text;
}

/// An operator's inputs, as record_shapes=True adds them. Whole numbers out of range are reported later.
OperatorCall call_of(const std::string& name, const json& args) {
  OperatorCall call{.name = name};
  const auto dims = args.find(args.contains("Input Dims") ? "Input Dims" : "Input dims");
  call.has_dims = dims != args.end() && dims->is_array();
  if (call.has_dims) {
    for (const json& input : *dims) {
      std::vector<std::int64_t>& shape = call.dims.emplace_back();
      for (const json& size : input.is_array() ? input : json::array()) {
        shape.push_back(whole_number(size).value_or(-1));
      }
    }
  }
  const auto texts = [&](const char* key, std::vector<std::string>& into) {
    const auto list = args.find(key);
    for (const json& text : list != args.end() && list->is_array() ? *list : json::array()) {
      into.push_back(text.is_string() ? text.get<std::string>() : std::string{});
    }
  };
  texts("Input type", call.types);
  texts("Concrete Inputs", call.concrete);
  return call;
}

/// A collective, described by a record_param_comms event or by the kernel that this event launched.
struct CollectiveCall {
  std::string name;
  std::string dtype;
  std::int64_t ranks = 0;
  std::int64_t sent = 0;  ///< elements
  std::int64_t received = 0;
  bool has_uneven_splits = false;
  std::string group;    ///< name of the group
  std::string members;  ///< "[0, 8]", or "[0, 1, ...]" for more than 30 ranks
  friend auto operator<=>(const CollectiveCall&, const CollectiveCall&) = default;
};

/// Returns the numbers of a list such as "[0, 8]"; none if any is larger than `largest`.
std::vector<std::int64_t> numbers_in(std::string_view list, std::int64_t largest) {
  std::vector<std::int64_t> numbers;
  for (std::size_t at = list.find_first_of("0123456789"); at != std::string_view::npos;
       at = list.find_first_of("0123456789", at)) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(list.data() + at, list.data() + list.size(), number);
    if (error != std::errc{} || number > largest) {
      return {};
    }
    numbers.push_back(number);
    at = static_cast<std::size_t>(end - list.data());
  }
  return numbers;
}

std::vector<std::int64_t> ranks_in(std::string_view list) { return numbers_in(list, score::max_gpus); }

/// Returns the text of a list of numbers, which may be in quotes.
std::string list_in(const json& object, const char* key) {
  const auto member = object.find(key);
  return member == object.end() ? std::string{} : member->is_string() ? member->get<std::string>() : member->dump();
}

bool is_uneven(const json& args, const char* key) {
  const std::string list = list_in(args, key);
  const std::vector<std::int64_t> splits = numbers_in(list, std::numeric_limits<std::int64_t>::max());
  const bool is_cut = list.find("...") != std::string::npos;
  return is_cut ||
         std::any_of(splits.begin(), splits.end(), [&](std::int64_t split) { return split != splits.front(); });
}

std::optional<CollectiveCall> collective_of(const json& args) {
  CollectiveCall call{.name = text_in(args, "Collective name"), .dtype = text_in(args, "dtype")};
  if (call.name.empty()) {
    return std::nullopt;
  }
  call.ranks = whole_number_in(args, "Group size").value_or(0);
  call.sent = whole_number_in(args, "In msg nelems").value_or(0);
  call.received = whole_number_in(args, "Out msg nelems").value_or(0);
  call.has_uneven_splits = is_uneven(args, "In split size") || is_uneven(args, "Out split size");
  call.group = name_in(args, "Process Group Name");
  call.members = list_in(args, "Process Group Ranks");
  return call;
}

/// Facts about the job, from distributedInfo.
struct Job {
  std::int64_t world = 0;
  std::map<std::string, std::vector<std::int64_t>> groups;  ///< ranks, by name

  void take_group(const json& group) {
    if (group.is_object()) {
      const std::vector<std::int64_t> ranks = ranks_in(list_in(group, "ranks"));
      if (!ranks.empty() && list_in(group, "ranks").find("...") == std::string::npos) {
        groups[name_in(group, "pg_name")] = ranks;
      }
    }
  }

  /// Returns all ranks of the collective's group; empty if the trace does not name them.
  [[nodiscard]] std::vector<std::int64_t> members_of(const CollectiveCall& call) const {
    const auto ranks = static_cast<std::size_t>(call.ranks);
    std::vector<std::int64_t> listed = ranks_in(call.members);
    if (listed.size() == ranks && call.members.find("...") == std::string::npos) {
      return listed;
    }
    if (const auto group = groups.find(call.group); group != groups.end() && group->second.size() == ranks) {
      return group->second;
    }
    if (call.ranks == world) {
      std::vector<std::int64_t> every_rank(ranks);
      std::iota(every_rank.begin(), every_rank.end(), std::int64_t{0});
      return every_rank;
    }
    return continued(std::move(listed), ranks);
  }

 private:
  /// Completes a list that was cut, if its ranks are evenly spaced.
  static std::vector<std::int64_t> continued(std::vector<std::int64_t> listed, std::size_t ranks) {
    if (listed.size() < 2 || listed.size() > ranks) {
      return {};
    }
    const std::int64_t stride = listed[1] - listed[0];
    for (std::size_t i = 1; i < listed.size(); ++i) {
      if (stride < 1 || listed[i] - listed[i - 1] != stride) {
        return {};
      }
    }
    while (listed.size() < ranks) {
      listed.push_back(listed.back() + stride);
    }
    return listed;
  }
};

/// Returns whether the counts of elements sent and received fit the op and its ranks. Requires `call` to have ranks and
/// counts of at least 1.
bool sizes_match(const CollectiveCall& call) {
  const std::string_view op = collective_named(call.name);
  const auto is_share_times_ranks = [&](std::int64_t total, std::int64_t share) {
    return total % call.ranks == 0 && total / call.ranks == share;
  };
  if (op == "all_gather") {
    return is_share_times_ranks(call.received, call.sent);
  }
  return op == "reduce_scatter" ? is_share_times_ranks(call.sent, call.received) : call.sent == call.received;
}

class KinetoCollector {
 public:
  static constexpr std::size_t max_kept = std::size_t{1} << 23U;  // About a gigabyte; a training step has 1e5 events.

  explicit KinetoCollector(std::string path) : path_(std::move(path)) {}

  Job& job() { return job_; }

  /// Throws ConfigError if there are too many events to keep.
  void take(const json& event) {
    const std::string category = in_lower_case(text_in(event, "cat"));
    const std::string phase = text_in(event, "ph");
    if (phase == "s" && category == "ac2g") {
      return take_flow(event);
    }
    const std::optional<double> begin = number_in(event, "ts");
    const std::optional<double> duration = number_in(event, "dur");
    if (phase != "X" || !duration || *duration < 0.0) {
      return;
    }
    ++events_;
    if (hosts_.size() + kernels_.size() + launches_.size() > max_kept) {
      throw ConfigError(
          fmt::format("{}: more than {} operators, launches and kernels; trace fewer steps", path_, max_kept));
    }
    static const json nothing = json::object();
    const auto arguments = event.find("args");
    const json& args = arguments != event.end() && arguments->is_object() ? *arguments : nothing;
    if (category == "cpu_op" || category == "operator") {
      take_op(event, args, begin.value_or(0.0), *duration);
    } else if (category == "kernel") {
      take_kernel(event, args, {device(event), begin.value_or(0.0), *duration});
    } else if (category.ends_with("runtime") || category.ends_with("driver")) {
      take_launch(event, args, begin.value_or(0.0));
    } else if (category == "gpu_memcpy" || category == "gpu_memset" || category == "memcpy" || category == "memset") {
      ++copies_;
    }
  }

  Profile profile() && {
    hosts_.finish();
    std::sort(ids_.begin(), ids_.end());
    std::stable_sort(launches_.begin(), launches_.end(),
                     [](const Launch& a, const Launch& b) { return a.correlation < b.correlation; });
    require_one_rank();
    for (const Kernel& kernel : kernels_) {
      place(kernel);
    }
    Profile profile = std::move(times_).profile();
    for (const auto& [call, time] : collectives_) {
      add_collective(call, time, profile);
    }
    for (const auto& [sentence, count] : skipped_) {
      profile.skipped[sentence] += count;
    }
    if (copies_ > 0) {
      profile.skipped["copies and fills of memory (gpu_memcpy, gpu_memset), which no fit uses"] += copies_;
    }
    return profile;
  }

  [[nodiscard]] bool empty() const { return events_ == 0; }

 private:
  static constexpr std::size_t none = HostRanges::none;

  struct Op {
    std::size_t call = none;        ///< index into times_, if a fit can use the operator
    std::size_t collective = none;  ///< index into calls_, for a record_param_comms
    std::uint32_t name = 0;         ///< index into names_
    std::uint32_t process = 0;      ///< number in processes_
    bool has_dims = false;
  };
  struct Launch {
    std::int64_t correlation = 0;
    double time = 0.0;
    std::optional<std::int64_t> external{};
    std::uint32_t thread = 0;
    std::uint32_t process = 0;  ///< number in processes_
    bool is_graph = false;
    bool is_flow = false;  ///< known only from a flow event
  };
  struct Kernel {
    KernelSpan span;
    std::optional<std::int64_t> external{};
    std::optional<std::int64_t> correlation{};
    std::size_t collective = none;  ///< index into calls_, if the kernel itself describes its collective
    bool is_collective = false;
  };

  std::uint32_t device(const json& event) {
    const std::string name = name_in(event, "pid");
    return devices_.emplace(name, static_cast<std::uint32_t>(devices_.size())).first->second;
  }

  std::uint32_t process(const json& event) {
    const auto [entry, is_new] =
        processes_.emplace(name_in(event, "pid"), static_cast<std::uint32_t>(processes_.size()));
    keep_text(is_new ? entry->first.size() : 0);
    return entry->second;
  }

  /// Correlations and external ids are unique only within a process, and a kernel does not name its process. Requires
  /// sorted launches_ and ids_.
  void require_one_rank() const {
    for (std::size_t i = 1; i < launches_.size(); ++i) {
      if (launches_[i].correlation == launches_[i - 1].correlation &&
          launches_[i].process != launches_[i - 1].process) {
        throw several_ranks(fmt::format("correlation {} belongs to launches", launches_[i].correlation),
                            launches_[i - 1].process, launches_[i].process);
      }
    }
    for (std::size_t i = 1; i < ids_.size(); ++i) {
      const std::uint32_t before = ops_[ids_[i - 1].second].process;
      const std::uint32_t process = ops_[ids_[i].second].process;
      if (ids_[i].first == ids_[i - 1].first && process != before) {
        throw several_ranks(fmt::format("External id {} belongs to operators", ids_[i].first), before, process);
      }
    }
  }

  [[nodiscard]] ConfigError several_ranks(const std::string& subject, std::uint32_t first, std::uint32_t second) const {
    const auto name = [&](std::uint32_t number) {
      const auto entry = std::find_if(processes_.begin(), processes_.end(),
                                      [&](const auto& process) { return process.second == number; });
      return in_quotes(entry->first);
    };
    return ConfigError(
        fmt::format("{}: {} of two processes, pid {} and pid {}, so kernels cannot be assigned to a process: it joins "
                    "the traces of several ranks; give the trace of each rank as a separate file",
                    path_, subject, name(first), name(second)));
  }

  /// Returns the index in calls_ of the event's collective; `none` if the event names no collective.
  std::size_t collective(const json& args) {
    const std::optional<CollectiveCall> call = collective_of(args);
    if (!call) {
      return none;
    }
    const auto [entry, is_new] = call_numbers_.emplace(*call, calls_.size());
    if (is_new) {
      keep_text(call->name.size() + call->dtype.size() + call->group.size() + call->members.size());
      calls_.push_back(&entry->first);
    }
    return entry->second;
  }

  std::uint32_t id_of_name(const std::string& name) {
    const auto [entry, is_new] = names_.emplace(name, static_cast<std::uint32_t>(names_.size()));
    keep_text(is_new ? name.size() : 0);
    return entry->second;
  }

  void keep_text(std::size_t letters) {
    constexpr std::size_t max_text = std::size_t{256} << 20U;
    text_ += letters;
    if (text_ > max_text) {
      throw ConfigError(fmt::format("{}: names of operators and groups take more than {} MiB; trace fewer steps", path_,
                                    max_text >> 20U));
    }
  }

  void take_op(const json& event, const json& args, double begin, double duration) {
    const std::string name = text_in(event, "name");
    const std::size_t range = hosts_.add(hosts_.thread(thread_of(event)), begin, begin + duration);
    Op op{.name = id_of_name(name),
          .process = process(event),
          .has_dims = args.contains("Input Dims") || args.contains("Input dims")};
    if (is_known_operator(name)) {
      op.call = times_.add_call(work_of(call_of(name, args)), runs_kernels(name));
    } else if (name == "record_param_comms") {
      op.collective = collective(args);
    }
    if (const std::optional<std::int64_t> id = external_id(args)) {
      ids_.emplace_back(*id, range);
    }
    ops_.push_back(op);
  }

  void take_launch(const json& event, const json& args, double time) {
    if (const std::optional<std::int64_t> correlation = whole_number_in(args, "correlation")) {
      launches_.push_back({.correlation = *correlation,
                           .time = time,
                           .external = external_id(args),
                           .thread = hosts_.thread(thread_of(event)),
                           .process = process(event),
                           .is_graph = text_in(event, "name").find("GraphLaunch") != std::string::npos});
    }
  }

  /// Takes a flow event, the arrow from a launch to its kernel; its id is the correlation.
  void take_flow(const json& event) {
    const std::optional<std::int64_t> id = whole_number_in(event, "id");
    const std::optional<double> time = number_in(event, "ts");
    if (id && time && launches_.size() < max_kept) {
      launches_.push_back({.correlation = *id,
                           .time = *time,
                           .thread = hosts_.thread(thread_of(event)),
                           .process = process(event),
                           .is_flow = true});
    }
  }

  void take_kernel(const json& event, const json& args, const KernelSpan& span) {
    Kernel kernel{.span = span, .external = external_id(args), .correlation = whole_number_in(args, "correlation")};
    kernel.collective = collective(args);
    kernel.is_collective = kernel.collective != none || is_collective_kernel(text_in(event, "name"));
    kernels_.push_back(kernel);
  }

  void place(const Kernel& kernel) {
    const Launch* const launch = launch_of(kernel);
    if (kernel.is_collective) {
      times_.add_communication(kernel.span);
      const std::size_t op = kernel.collective != none ? none : op_of(kernel, launch, [&](std::size_t range) {
        return ops_[range].collective != none;
      });
      place_collective(kernel, op == none ? kernel.collective : ops_[op].collective);
      return;
    }
    std::size_t op = op_of(kernel, launch, [&](std::size_t range) { return ops_[range].has_dims; });
    if (op == none) {
      op = op_of(kernel, launch, [](std::size_t) { return true; });
    }
    if (launch != nullptr && launch->is_graph) {
      times_.add_unusable_kernel(kernel.span, "kernels of CUDA graphs, which no operator launches");
    } else if (op == none) {
      times_.add_unusable_kernel(kernel.span, "kernels that no operator of the trace launched");
    } else if (ops_[op].call != none) {
      times_.add_kernel(ops_[op].call, kernel.span);
    } else {
      times_.add_other_kernel(kernel.span, name_of(ops_[op].name));
    }
  }

  [[nodiscard]] const Launch* launch_of(const Kernel& kernel) const {
    if (!kernel.correlation) {
      return nullptr;
    }
    const auto first = std::lower_bound(launches_.begin(), launches_.end(), *kernel.correlation,
                                        [](const Launch& a, std::int64_t id) { return a.correlation < id; });
    if (first == launches_.end() || first->correlation != *kernel.correlation) {
      return nullptr;
    }
    const auto next = std::next(first);
    const bool is_twice = first->is_flow && next != launches_.end() && next->correlation == first->correlation;
    return is_twice ? &*next : &*first;
  }

  /// In some traces the external id of a kernel is its correlation instead of the id of an operator.
  template <class Accept>
  [[nodiscard]] std::size_t op_of(const Kernel& kernel, const Launch* launch, const Accept& accept) const {
    if (launch != nullptr) {
      if (const std::size_t op = hosts_.innermost(launch->thread, launch->time, accept); op != none) {
        return op;
      }
    }
    for (const std::optional<std::int64_t>& id :
         {kernel.external, launch != nullptr ? launch->external : std::optional<std::int64_t>{}}) {
      if (!id || id == kernel.correlation) {
        continue;
      }
      const auto entry = std::lower_bound(ids_.begin(), ids_.end(), std::pair(*id, std::size_t{0}));
      if (entry != ids_.end() && entry->first == *id && accept(entry->second)) {
        return entry->second;
      }
    }
    return none;
  }

  [[nodiscard]] std::string_view name_of(std::uint32_t number) {
    if (names_by_number_.empty()) {
      names_by_number_.resize(names_.size());
      for (const auto& [name, at] : names_) {
        names_by_number_[at] = name;
      }
    }
    return names_by_number_[number];
  }

  void place_collective(const Kernel& kernel, std::size_t number) {
    if (number == none) {
      ++skipped_["NCCL kernels whose collective the trace does not name"];
      return;
    }
    const CollectiveCall& call = *calls_[number];
    const double time = kernel.span.duration;
    const int bytes = element_bytes(call.dtype);
    const std::int64_t largest = std::max(call.sent, call.received);
    if (collective_named(call.name).empty()) {
      ++skipped_[fmt::format("{}, which the model does not support", call.name)];
    } else if (call.has_uneven_splits) {
      ++skipped_["all-to-alls whose splits are uneven, or too many to be listed"];
    } else if (bytes == 0 || call.ranks < 2 || call.sent < 1 || call.received < 1) {
      ++skipped_["collectives without a dtype, size or number of ranks"];
    } else if (call.ranks > score::max_gpus || largest > score::max_bytes / bytes || !is_measured_time(time)) {
      ++skipped_["collectives whose size, ranks or time is out of range"];
    } else if (!sizes_match(call)) {
      ++skipped_[fmt::format("{} whose elements in and out do not agree with its ranks", collective_named(call.name))];
    } else {
      const auto [entry, is_new] = collectives_.emplace(call, time);
      entry->second = is_new ? time : std::min(entry->second, time);
    }
  }

  void add_collective(const CollectiveCall& call, double time, Profile& profile) const {
    const std::string op(collective_named(call.name));
    const std::int64_t elements = op == "all_gather" ? call.received : call.sent;
    profile.collectives.push_back({.op = op,
                                   .ranks = static_cast<int>(call.ranks),
                                   .bytes = elements * element_bytes(call.dtype),
                                   .time_us = time,
                                   .members = job_.members_of(call),
                                   .world = job_.world});
  }

  std::string path_;
  Job job_;
  HostRanges hosts_;
  std::vector<Op> ops_;                                    // by range of hosts_
  std::vector<std::pair<std::int64_t, std::size_t>> ids_;  // external ids of ops_
  std::vector<Launch> launches_;
  std::vector<Kernel> kernels_;
  std::map<CollectiveCall, std::size_t> call_numbers_;
  std::vector<const CollectiveCall*> calls_;
  std::map<CollectiveCall, double> collectives_;  // shortest time
  std::map<std::string, std::uint32_t> names_;    // names of operators
  std::vector<std::string_view> names_by_number_;
  std::map<std::string, std::uint32_t> devices_;
  std::map<std::string, std::uint32_t> processes_;
  std::map<std::string, std::size_t> skipped_;
  CallTimes times_;
  std::size_t text_ = 0;  // number of characters kept
  std::size_t copies_ = 0;
  std::size_t events_ = 0;
};

}  // namespace

Profile read_kineto(const fs::path& path) {
  KinetoCollector collector(path.string());
  visit_kineto(path, {.event = [&](const json& event) { collector.take(event); },
                      .distributed =
                          [&](std::string_view key, const json& value) {
                            if (key == "world_size") {
                              collector.job().world = whole_number(value).value_or(0);
                            } else if (key == "pg_config" && value.is_array()) {
                              std::for_each(value.begin(), value.end(),
                                            [&](const json& group) { collector.job().take_group(group); });
                            }
                          }});
  if (collector.empty()) {
    throw ConfigError(fmt::format("{}: the trace has no events; export it again", path.string()));
  }
  return std::move(collector).profile();
}

}  // namespace commfuse::calibrate
