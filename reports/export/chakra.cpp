// SPDX-License-Identifier: Apache-2.0
#include "reports/export/chakra.h"

#include <et_def.pb.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <nlohmann/json.hpp>

#include "model/check.h"
#include "reports/op_totals.h"
#include "reports/trace_label.h"

namespace commfuse::reports {

namespace {

namespace proto = ChakraProtoMsg;

constexpr const char* schema_version = "0.0.4";  // the version that Chakra's own converters write

class Attributes {
 public:
  explicit Attributes(proto::Node& node) : node_(node) {}

  // Uses the types that Chakra's converters choose, because older feeders read no others.
  void flag(const char* name, bool value) { add(name).set_bool_val(value); }
  void number(const char* name, std::int32_t value) { add(name).set_int32_val(value); }
  void count(const char* name, std::int64_t value) { add(name).set_int64_val(value); }
  void size(const char* name, Bytes value) { add(name).set_uint64_val(static_cast<std::uint64_t>(value.count)); }
  void text(const char* name, const std::string& value) { add(name).set_string_val(value); }

 private:
  proto::AttributeProto& add(const char* name) {
    proto::AttributeProto& attribute = *node_.add_attr();
    attribute.set_name(name);
    return attribute;
  }

  proto::Node& node_;
};

/// Returns the scaled time, rounded to the nearest microsecond.
std::uint64_t microseconds(Duration time, std::int64_t scale) {
  constexpr std::int64_t ps_per_us = 1'000'000;
  const std::int64_t whole = time.count() / ps_per_us * scale;
  return static_cast<std::uint64_t>(whole + (time.count() % ps_per_us * scale + ps_per_us / 2) / ps_per_us);
}

proto::CollectiveCommType type_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather: return proto::ALL_GATHER;
    case CollectiveKind::reduce_scatter: return proto::REDUCE_SCATTER;
    case CollectiveKind::all_reduce: return proto::ALL_REDUCE;
    case CollectiveKind::all_to_all: return proto::ALL_TO_ALL;
  }
  return proto::ALL_REDUCE;
}

/// Returns the name of the group along an axis that contains `rank`; empty for the group of all ranks. Names are
/// numbers from 1.
std::string group_of(const Mesh& mesh, int axis, Rank rank) {
  if (mesh.axes[static_cast<std::size_t>(axis)].extent == mesh.ranks()) {
    return {};
  }
  return std::to_string(1 + axis * mesh.ranks() + mesh.member(rank, axis, 0));
}

class NodeWriter {
 public:
  NodeWriter(const ExportInput& input, Rank rank, const ChakraOptions& options)
      : input_(input), program_(input.program()), rank_(rank), options_(options) {}

  [[nodiscard]] proto::Node node(std::uint64_t id, const Task& task) const {
    proto::Node node;
    node.set_id(id);
    for (const std::int32_t earlier : task.after) {
      node.add_data_deps(static_cast<std::uint64_t>(earlier));
    }
    Attributes attributes(node);
    attributes.flag("is_cpu_op", task.host);
    switch (task.kind) {
      case Task::Kind::calculation: calculation(task, node); break;
      case Task::Kind::send: message(task, true, node); break;
      case Task::Kind::receive: message(task, false, node); break;
      case Task::Kind::collective: collective(task, node); break;
    }
    return node;
  }

 private:
  void calculation(const Task& task, proto::Node& node) const {
    const Op& op = program_.ops[position(task.op)];
    node.set_type(proto::COMP_NODE);
    node.set_name(fmt::format("{} {}", label_of(task), op_label(program_, op, rank_)));
    node.set_duration_micros(microseconds(task.time, options_.time_scale));
    const OpTotals totals = task.host ? OpTotals{} : totals_of(input_.sizes, program_.shapes[op.shape]);
    Attributes attributes(node);
    attributes.count("num_ops", totals.operations);
    attributes.size("tensor_size", totals.moved);
  }

  void message(const Task& task, bool sends, proto::Node& node) const {
    node.set_type(sends ? proto::COMM_SEND_NODE : proto::COMM_RECV_NODE);
    node.set_name(fmt::format("{} {} {}", label_of(task), sends ? "to" : "from", task.peer));
    Attributes attributes(node);
    attributes.count("comm_size", task.bytes.count);
    attributes.number("comm_src", sends ? rank_ : task.peer);
    attributes.number("comm_dst", sends ? task.peer : rank_);
    attributes.number("comm_tag", static_cast<std::int32_t>(task.tag));
  }

  void collective(const Task& task, proto::Node& node) const {
    const Op& op = program_.ops[position(task.op)];
    const auto& shape = std::get<CollectiveShape>(program_.shapes[op.shape]);
    node.set_type(proto::COMM_COLL_NODE);
    node.set_name(fmt::format("{} {}", label_of(task), op_label(program_, op, rank_)));
    Attributes attributes(node);
    attributes.count("comm_type", type_of(shape.kind));
    attributes.count("comm_size", task.bytes.count);
    if (const std::string group = group_of(program_.mesh, shape.axis, rank_); !group.empty()) {
      attributes.text("pg_name", group);
    }
  }

  const ExportInput& input_;
  const Program& program_;
  Rank rank_;
  ChakraOptions options_;
};

proto::GlobalMetadata metadata_of(const ChakraOptions& options) {
  proto::GlobalMetadata metadata;
  metadata.set_version(schema_version);
  proto::AttributeProto& scale = *metadata.add_attr();
  scale.set_name("commfuse_time_scale");
  scale.set_int64_val(options.time_scale);
  return metadata;
}

/// Writes the length of a message, then the message.
void write_with_length(const google::protobuf::MessageLite& message, google::protobuf::io::CodedOutputStream& out) {
  out.WriteVarint32(static_cast<std::uint32_t>(message.ByteSizeLong()));
  check(message.SerializeToCodedStream(&out), "every message can be written to a string");
}

}  // namespace

std::string chakra_trace(const ExportInput& input, Rank rank, const ChakraOptions& options) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    write_with_length(metadata_of(options), out);
    const std::vector<Task> tasks = tasks_of(input, rank, {.messages = options.messages});
    const NodeWriter writer(input, rank, options);
    for (std::size_t id = 0; id < tasks.size(); ++id) {
      write_with_length(writer.node(id, tasks[id]), out);
    }
    if (tasks.empty()) {
      proto::Node idle;
      idle.set_name("idle");
      idle.set_type(proto::COMP_NODE);
      write_with_length(idle, out);
    }
  }
  return bytes;
}

std::string chakra_groups(const Program& program) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::object();
  for (const Op& op : program.ops) {
    const auto* collective = std::get_if<CollectiveShape>(&program.shapes[op.shape]);
    for (Rank rank = 0; collective != nullptr && rank < program.mesh.ranks(); ++rank) {
      const std::string name = group_of(program.mesh, collective->axis, rank);
      if (name.empty() || groups.contains(name)) {
        continue;
      }
      for (std::int32_t i = 0; i < program.mesh.axes[static_cast<std::size_t>(collective->axis)].extent; ++i) {
        groups[name].push_back(program.mesh.member(rank, collective->axis, i));
      }
    }
  }
  return groups.empty() ? std::string{} : groups.dump(2) + "\n";
}

}  // namespace commfuse::reports
