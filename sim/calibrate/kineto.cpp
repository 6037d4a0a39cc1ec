// SPDX-License-Identifier: Apache-2.0
// Fields: pytorch/kineto, libkineto/src/output_json.cpp; names of collectives: pytorch, torch/csrc/distributed/c10d
// (ProcessGroupNCCL.cpp, RECORD_PARAM_COMMS).
#include "sim/calibrate/kineto.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "model/config_error.h"
#include "model/formats/measured_time.h"
#include "model/json_budget.h"
#include "model/json_characters.h"
#include "model/text/files.h"
#include "sim/score/row.h"

namespace commfuse::calibrate {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Characters of a file, gzipped or not, for a parser that takes one after the other.
class Characters {
 public:
  /// Throws ConfigError where the file cannot be read.
  explicit Characters(const fs::path& path) : path_(path), file_(::gzopen(path.c_str(), "rb"), &::gzclose) {
    if (!file_) {
      throw ConfigError(fmt::format("{}: cannot be read; check the path", path.string()));
    }
    fill();
    at_ = count_ - without_byte_order_mark({buffer_.data(), count_}).size();
    if (at_ == count_) {
      fill();
    }
  }
  [[nodiscard]] bool at_end() const { return count_ == 0; }
  [[nodiscard]] char front() const { return buffer_[at_]; }
  void pop() {
    places_.pass(front());
    if (++at_ >= count_) {
      fill();
    }
  }
  /// An event is over. Throws ConfigError once more than longest_json_piece, about, came without one.
  void forget() { since_ = 0; }
  [[nodiscard]] const JsonPlaces& places() const { return places_; }

 private:
  void fill() {
    const int read = ::gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
    count_ = read > 0 ? static_cast<std::size_t>(read) : 0;
    at_ = 0;
    since_ += count_;
    if (since_ > longest_json_piece + buffer_.size()) {
      throw ConfigError(fmt::format("{}: one event takes more than {} MiB; export the trace again", path_.string(),
                                    longest_json_piece >> 20U));
    }
  }

  fs::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::vector<char> buffer_ = std::vector<char>(1 << 18);
  std::size_t at_ = 0;
  std::size_t count_ = 0;
  std::size_t since_ = 0;  // unpacked, since the last event
  JsonPlaces places_;      // in what was unpacked
};

struct Span {
  double begin = 0.0;  // us
  double end = 0.0;
};

std::string text_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::optional<std::int64_t> whole_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() ? whole_number(*found) : std::nullopt;
}

double number_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : -1.0;
}

struct NamedType {
  std::string_view name;
  DType dtype;
  int bytes;
};
constexpr std::array types{NamedType{"c10::BFloat16", DType::bf16, 2}, NamedType{"BFloat16", DType::bf16, 2},
                           NamedType{"c10::Half", DType::fp16, 2},     NamedType{"Half", DType::fp16, 2},
                           NamedType{"float", DType::fp32, 4},         NamedType{"Float", DType::fp32, 4}};

const NamedType* type_named(std::string_view name) {
  const auto* const found =
      std::find_if(types.begin(), types.end(), [&](const NamedType& t) { return t.name == name; });
  return found == types.end() ? nullptr : found;
}

/// Of a product whose arithmetic stays in range.
bool is_extent(const std::optional<std::int64_t>& size) { return size && *size >= 1 && *size <= score::most_extent; }

/// nccl-tests' word for PyTorch's; empty where there is none.
std::string_view collective_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> words{
      {{"_allgather_base", "all_gather"},
       {"allgather", "all_gather"},
       {"all_gather_into_tensor_coalesced", "all_gather"},
       {"_reduce_scatter_base", "reduce_scatter"},
       {"reduce_scatter", "reduce_scatter"},
       {"reduce_scatter_tensor_coalesced", "reduce_scatter"},
       {"allreduce", "all_reduce"},
       {"all_to_all", "alltoall"},
       {"all_to_allv", "alltoall"}}};
  const auto* const found = std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.first == name; });
  return found == words.end() ? std::string_view{} : found->second;
}

class Collector {
 public:
  static constexpr std::size_t most_kept = std::size_t{1} << 22U;  // Half a gigabyte; a step has thousands.

  explicit Collector(std::string path) : path_(std::move(path)) {}

  /// Throws ConfigError where it is one too many to keep.
  void take(const json& event) {
    const std::string category = text_in(event, "cat");
    const double duration = number_in(event, "dur");
    const auto args = event.find("args");
    if (text_in(event, "ph") != "X" || args == event.end() || !args->is_object() || duration < 0.0) {
      return;
    }
    ++events_;
    if (products_.size() + kernels_kept_ > most_kept) {
      throw ConfigError(fmt::format("{}: more than {} products and kernels; trace fewer steps", path_, most_kept));
    }
    if (category == "cpu_op") {
      take_op(text_in(event, "name"), *args);
    } else if (category == "kernel") {
      const double begin = number_in(event, "ts");
      take_kernel(event, *args, {begin, begin + duration});
    }
  }

  KinetoTrace trace() && {
    for (auto& [device, spans] : communication_) {
      std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
    }
    for (const auto& [id, size] : products_) {
      add_product(id, size);
    }
    for (const auto& [key, time] : collectives_) {
      const auto& [op, ranks, bytes, members] = key;
      trace_.collectives.push_back({op, ranks, bytes, time, members});
    }
    return std::move(trace_);
  }

  [[nodiscard]] bool empty() const { return events_ == 0; }

 private:
  void take_op(const std::string& name, const json& args) {
    if (name != "aten::mm" && name != "aten::addmm") {
      return;
    }
    const std::optional<std::int64_t> id = whole_in(args, "External id");
    const auto dims = args.find("Input Dims");
    const auto kinds = args.find("Input type");
    if (!id || dims == args.end() || kinds == args.end()) {
      skip("products without sizes: profile with record_shapes=True");
      return;
    }
    const std::size_t first = name == "aten::mm" ? 0 : 1;
    try {
      const json& a = dims->at(first);
      const json& b = dims->at(first + 1);
      const NamedType* type = type_named(kinds->at(first).get<std::string>());
      if (type == nullptr) {
        skip("products in a type that the model has not");
        return;
      }
      const auto m = whole_number(a.at(0));
      const auto n = whole_number(b.at(1));
      const auto k = whole_number(a.at(1));
      if (is_extent(m) && is_extent(n) && is_extent(k)) {
        products_[*id] = {.m = *m, .n = *n, .k = *k, .dtype = type->dtype};
        return;
      }
    } catch (const json::exception&) {
    }
    skip("products whose sizes are not two matrices");
  }

  void take_kernel(const json& event, const json& args, Span span) {
    const std::string device = event.contains("pid") ? event.at("pid").dump() : "";
    const std::string name = text_in(args, "Collective name");
    if (!name.empty() || text_in(event, "name").starts_with("nccl")) {
      communication_[device].push_back(span);
      ++kernels_kept_;
      take_collective(name, args, span.end - span.begin);
    } else if (const std::optional<std::int64_t> id = whole_in(args, "External id")) {
      kernels_[*id].push_back({device, span});
      ++kernels_kept_;
    }
  }

  /// Ranks of "[0, 8]"; long lists are cut in the middle by "...".
  static std::vector<std::int64_t> members_in(const std::string& list) {
    std::vector<std::int64_t> members;
    std::int64_t number = -1;
    for (const char letter : list + " ") {
      if (letter >= '0' && letter <= '9' && number < score::most_gpus) {
        number = std::max<std::int64_t>(number, 0) * 10 + (letter - '0');
      } else if (number >= 0) {
        members.push_back(number);
        number = -1;
      }
    }
    return members;
  }

  void take_collective(const std::string& name, const json& args, double time) {
    const std::string_view op = collective_named(name);
    const NamedType* type = type_named(text_in(args, "dtype"));
    const std::optional<std::int64_t> ranks = whole_in(args, "Group size");
    const std::optional<std::int64_t> count = whole_in(args, op == "all_gather" ? "Out msg nelems" : "In msg nelems");
    if (op.empty()) {
      skip(name.empty() ? "NCCL kernels without a name of their collective"
                        : fmt::format("{}, which the model has not", name));
    } else if (type == nullptr || !ranks || !count || *ranks < 2 || *count < 1) {
      skip("collectives without type, size or ranks");
    } else if (*ranks > score::most_gpus || *count > score::most_bytes / type->bytes || !is_measured_time(time)) {
      skip("collectives whose size, ranks or time is out of range");
    } else {
      const std::tuple key{std::string(op), static_cast<int>(*ranks), *count * type->bytes,
                           members_in(text_in(args, "Process Group Ranks"))};
      const auto [place, is_new] = collectives_.emplace(key, time);
      place->second = is_new ? time : std::min(place->second, time);
    }
  }

  void add_product(std::int64_t id, const GemmSize& size) {
    const auto found = kernels_.find(id);
    if (found == kernels_.end()) {
      skip("products without a kernel");
      return;
    }
    double time = 0.0;
    for (const auto& [device, span] : found->second) {
      if (meets_communication(device, span)) {
        skip("products beside communication, which slows them");
        return;
      }
      time += span.end - span.begin;
    }
    if (!is_measured_time(time)) {
      skip("products that took no time from 1 ps to 1e5 s");
      return;
    }
    trace_.products.push_back({size, from_seconds(1e-6 * time)});
  }

  [[nodiscard]] bool meets_communication(const std::string& device, Span span) const {
    const auto found = communication_.find(device);
    return found != communication_.end() &&
           std::any_of(found->second.begin(), found->second.end(),
                       [&](const Span& other) { return other.begin < span.end && span.begin < other.end; });
  }

  void skip(const std::string& sentence) { ++trace_.skipped[sentence]; }

  struct Kernel {
    std::string device;
    Span span;
  };
  std::string path_;
  std::map<std::int64_t, GemmSize> products_;               // by id of their op
  std::map<std::int64_t, std::vector<Kernel>> kernels_;     // by that of the op that launched them
  std::map<std::string, std::vector<Span>> communication_;  // by device
  std::map<std::tuple<std::string, int, std::int64_t, std::vector<std::int64_t>>, double> collectives_;
  KinetoTrace trace_;
  std::size_t events_ = 0;
  std::size_t kernels_kept_ = 0;
};

}  // namespace

bool is_kineto_trace(const fs::path& path) {
  constexpr std::size_t enough = 1 << 16;
  std::string head;
  for (Characters characters(path); head.size() < enough && !characters.at_end(); characters.pop()) {
    head += characters.front();
  }
  const bool is_object = head.find_first_not_of(" \t\r\n") == head.find('{');
  return is_object && (head.find("\"traceEvents\"") != std::string::npos ||
                       (head.find("\"schemaVersion\"") != std::string::npos &&
                        head.find("\"deviceProperties\"") != std::string::npos));
}

KinetoTrace read_kineto(const fs::path& path) {
  Characters characters(path);
  Collector collector(path.string());
  // Events are objects inside a list inside the file; each is looked at and forgotten.
  const auto take = [&](json::parse_event_t what, const json& parsed) {
    characters.forget();
    if (what == json::parse_event_t::object_end) {
      collector.take(parsed);
    }
  };
  try {
    take_and_forget<json>(path.string(), 2, take, JsonCharacter(&characters), JsonCharacter<Characters>(nullptr));
  } catch (const json::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}: is not a whole trace of PyTorch's profiler; export it again", path.string(),
                                  characters.places().place(error.byte)));
  } catch (const json::exception&) {  // A number that fits no double.
    throw ConfigError(fmt::format("{}:{}: a number is out of range; export the trace again", path.string(),
                                  characters.places().last()));
  }
  if (collector.empty()) {
    throw ConfigError(fmt::format("{}: a trace without events; export it again", path.string()));
  }
  return std::move(collector).trace();
}

}  // namespace commfuse::calibrate
