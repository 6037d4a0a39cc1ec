// SPDX-License-Identifier: Apache-2.0
// Message types: mlcommons/chakra, schema/protobuf/et_def.proto. Conversion of PyTorch's traces: mlcommons/chakra,
// src/converter/pytorch_converter.py. Every node of a kernel has is_cpu_op = false and its operator among ctrl_deps.
//
// Ignored: metadata nodes, loads and stores of memory, storage and checkpoints, and the host time of operators.
#include "sim/calibrate/chakra.h"

#include <et_def.pb.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config_error.h"
#include "model/text/files.h"
#include "sim/calibrate/call_times.h"
#include "sim/calibrate/operators.h"

namespace commfuse::calibrate {

namespace {

namespace fs = std::filesystem;
namespace proto = ChakraProtoMsg;
using google::protobuf::io::CodedInputStream;

constexpr std::size_t max_bytes = std::size_t{512} << 20U;
/// Times are in whole microseconds, so the time of a shorter kernel may be off by more than 1%.
constexpr std::uint64_t min_microseconds = 100;

std::string beginning_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string head(1 << 14, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return head;
}

CodedInputStream stream_of(std::string_view bytes) {
  // NOLINTNEXTLINE(*-reinterpret-cast): protobuf's bytes are unsigned
  return CodedInputStream(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
}

/// Reads a length, then a message of that length. Returns false at the end of the stream.
bool read_message(CodedInputStream& in, google::protobuf::MessageLite& message) {
  std::uint32_t length = 0;
  if (!in.ReadVarint32(&length) || length > max_bytes) {
    return false;
  }
  const CodedInputStream::Limit limit = in.PushLimit(static_cast<int>(length));
  const bool is_whole = message.ParseFromCodedStream(&in) && in.BytesUntilLimit() == 0;
  in.PopLimit(limit);
  return is_whole;
}

const proto::AttributeProto* attribute(const google::protobuf::RepeatedPtrField<proto::AttributeProto>& attributes,
                                       std::string_view name) {
  const auto match = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const proto::AttributeProto& attribute) { return attribute.name() == name; });
  return match == attributes.end() ? nullptr : &*match;
}

bool is_kernel(const proto::Node& node) {
  const proto::AttributeProto* const is_cpu_op = attribute(node.attr(), "is_cpu_op");
  return is_cpu_op != nullptr && is_cpu_op->value_case() == proto::AttributeProto::kBoolVal && !is_cpu_op->bool_val();
}

/// Reads "['Tensor(c10::BFloat16)', 'Int']" as Python writes it, or with JSON's double quotes.
std::vector<std::string> types_in(std::string_view text) {
  constexpr std::size_t limit = 64;
  constexpr std::string_view prefix = "Tensor(";
  std::vector<std::string> types;
  for (std::size_t at = text.find_first_of("'\""); at != std::string_view::npos && types.size() < limit;
       at = text.find_first_of("'\"", at + 1)) {
    const std::size_t end = text.find(text[at], at + 1);
    if (end == std::string_view::npos) {
      break;
    }
    std::string_view type = text.substr(at + 1, end - at - 1);
    if (type.starts_with(prefix) && type.ends_with(')')) {
      type = type.substr(prefix.size(), type.size() - prefix.size() - 1);
    }
    types.emplace_back(type);
    at = end;
  }
  return types;
}

OperatorCall call_of(const proto::Node& node) {
  OperatorCall call{.name = node.name(), .types = types_in(node.inputs().types())};
  if (std::optional<std::vector<std::vector<std::int64_t>>> dims = dims_in_text(node.inputs().shapes())) {
    call.dims = std::move(*dims);
    call.has_dims = !call.dims.empty();
  }
  return call;
}

class ChakraCollector {
 public:
  void take(const proto::Node& node) {
    const bool is_communication = node.type() == proto::COMM_COLL_NODE || node.type() == proto::COMM_SEND_NODE ||
                                  node.type() == proto::COMM_RECV_NODE;
    const KernelSpan span{.begin = static_cast<double>(node.start_time_micros()),
                          .duration = static_cast<double>(node.duration_micros())};
    has_starts_ = has_starts_ || node.start_time_micros() > 0;
    if (is_communication && is_kernel(node)) {
      has_communication_ = true;
      times_.add_unusable_communication(
          span,
          "collectives and messages, whose ranks a Chakra trace does not name: use nccl-tests or the trace of "
          "PyTorch's profiler");
    } else if (is_kernel(node)) {
      kernels_.push_back({span, node.ctrl_deps(), node.duration_micros()});
    } else if (is_known_operator(node.name())) {
      calls_[node.id()] = times_.add_call(work_of(call_of(node)), false);
    } else if (node.type() == proto::COMP_NODE && node.duration_micros() > 0 && !is_operator(node)) {
      times_.add_unusable_kernel(span, "computations without operator shapes, which only traces of PyTorch runs have");
    }
  }

  Profile profile() && {
    for (const Kernel& kernel : kernels_) {
      place(kernel);
    }
    if (!has_starts_) {
      times_.forget_starts();
    }
    return std::move(times_).profile();
  }

 private:
  struct Kernel {
    Kernel(const KernelSpan& when, const google::protobuf::RepeatedField<std::uint64_t>& ids,
           std::uint64_t microseconds)
        : span(when), operators(ids.begin(), ids.end()), duration(microseconds) {}
    KernelSpan span;
    std::vector<std::uint64_t> operators;
    std::uint64_t duration;
  };

  /// Returns whether the node is an operator on the host, whose time is not the time of a kernel.
  static bool is_operator(const proto::Node& node) { return attribute(node.attr(), "is_cpu_op") != nullptr; }

  void place(const Kernel& kernel) {
    const auto operation = std::find_if(kernel.operators.begin(), kernel.operators.end(),
                                        [&](std::uint64_t id) { return calls_.contains(id); });
    if (operation == kernel.operators.end()) {
      times_.add_unusable_kernel(kernel.span, "kernels of operators without a fit");
    } else if (kernel.duration < min_microseconds) {
      times_.add_unusable_kernel(
          kernel.span,
          fmt::format("kernels shorter than {} us, too short for times in whole microseconds", min_microseconds));
    } else if (has_communication_ && !has_starts_) {
      times_.add_unusable_kernel(kernel.span,
                                 "kernels that communication may have slowed, which only start times would show");
    } else {
      times_.add_kernel(calls_[*operation], kernel.span);
    }
  }

  std::map<std::uint64_t, std::size_t> calls_;  // index into times_, by node
  std::vector<Kernel> kernels_;
  bool has_communication_ = false;
  bool has_starts_ = false;
  CallTimes times_;
};

}  // namespace

bool is_chakra_json(const fs::path& path) {
  const std::string head = beginning_of(path);
  const std::string_view text = without_byte_order_mark(head);
  return text.find_first_not_of(" \t\r\n") == text.find('{') && text.find("\"schema\"") != std::string_view::npos &&
         text.find("-chakra.") != std::string_view::npos;
}

bool is_chakra_trace(const fs::path& path) {
  const std::string head = beginning_of(path);
  CodedInputStream in = stream_of(head);
  proto::GlobalMetadata metadata;
  if (!read_message(in, metadata)) {
    return false;
  }
  const bool has_version =
      !metadata.version().empty() && std::isdigit(static_cast<unsigned char>(metadata.version()[0]));
  return has_version || attribute(metadata.attr(), "schema") != nullptr;
}

Profile read_chakra(const fs::path& path) {
  if (is_chakra_json(path)) {
    throw ConfigError(
        fmt::format("{}: a PyTorch execution trace, which has no kernel times; give PyTorch's profiler "
                    "trace of the same run, or the .et that chakra_trace_link and chakra_converter make from both",
                    path.string()));
  }
  const std::string bytes = read_file(path.string(), max_bytes);
  if (bytes.size() > max_bytes) {
    throw ConfigError(fmt::format("{}: is larger than 512 MiB; trace fewer steps", path.string()));
  }
  CodedInputStream in = stream_of(bytes);
  proto::GlobalMetadata metadata;
  if (!read_message(in, metadata)) {
    throw ConfigError(fmt::format("{}: does not begin like a Chakra trace; convert it again", path.string()));
  }
  if (attribute(metadata.attr(), "commfuse_time_scale") != nullptr) {
    throw ConfigError(fmt::format(
        "{}: a schedule that commfuse exported, whose times are predictions; give the trace of a run", path.string()));
  }
  ChakraCollector collector;
  proto::Node node;
  while (in.CurrentPosition() < static_cast<int>(bytes.size())) {
    const int position = in.CurrentPosition();
    if (!read_message(in, node)) {
      throw ConfigError(fmt::format("{}: the data at byte {} is not a node of a Chakra trace; convert it again",
                                    path.string(), position));
    }
    collector.take(node);
  }
  return std::move(collector).profile();
}

}  // namespace commfuse::calibrate
