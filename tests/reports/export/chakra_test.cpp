// SPDX-License-Identifier: Apache-2.0
#include "reports/export/chakra.h"

#include <et_def.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <tuple>

#include "model/check.h"
#include "tests/reports/export/exported.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;
namespace proto = ChakraProtoMsg;

struct Trace {
  proto::GlobalMetadata metadata;
  std::vector<proto::Node> nodes;
};

/// Reads bytes as ASTRA-sim's feeders do: a length, then a message of that length, repeated to the end.
Trace read(const std::string& bytes) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  const auto next = [&](google::protobuf::MessageLite& message) {
    std::uint32_t length = 0;
    if (!in.ReadVarint32(&length)) {
      return false;
    }
    std::string bytes_of_message;
    EXPECT_TRUE(in.ReadString(&bytes_of_message, static_cast<int>(length)));
    EXPECT_TRUE(message.ParseFromString(bytes_of_message));
    return true;
  };
  Trace trace;
  EXPECT_TRUE(next(trace.metadata));
  for (proto::Node node; next(node);) {
    trace.nodes.push_back(node);
  }
  return trace;
}

std::vector<Trace> traces_of(const Exported& exported, const reports::ChakraOptions& options = {}) {
  std::vector<Trace> traces;
  for (Rank rank = 0; rank < exported.program->mesh.ranks(); ++rank) {
    traces.push_back(read(reports::chakra_trace(exported.input(), rank, options)));
  }
  return traces;
}

const proto::AttributeProto& attribute(const proto::Node& node, const std::string& name) {
  const auto value = std::find_if(node.attr().begin(), node.attr().end(),
                                  [&](const proto::AttributeProto& candidate) { return candidate.name() == name; });
  check(value != node.attr().end(), "the node has the attribute");
  return *value;
}

std::map<proto::NodeType, int> count_of(const Trace& trace) {
  std::map<proto::NodeType, int> counts;
  for (const proto::Node& node : trace.nodes) {
    ++counts[node.type()];
  }
  return counts;
}

/// Expects ids 0, 1, 2 ..., dependencies only on earlier nodes of the rank, and for every send one receive of its size.
void expect_sound(const std::vector<Trace>& traces) {
  using Message = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int64_t>;  // source, target, tag, bytes
  std::multiset<Message> sends;
  std::multiset<Message> receives;
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    for (std::size_t i = 0; i < traces[rank].nodes.size(); ++i) {
      const proto::Node& node = traces[rank].nodes[i];
      EXPECT_EQ(node.id(), i);
      EXPECT_EQ(node.ctrl_deps_size(), 0);
      for (const std::uint64_t earlier : node.data_deps()) {
        EXPECT_LT(earlier, i);
      }
      const bool sent = node.type() == proto::COMM_SEND_NODE;
      if (sent || node.type() == proto::COMM_RECV_NODE) {
        const Message message{attribute(node, "comm_src").int32_val(), attribute(node, "comm_dst").int32_val(),
                              attribute(node, "comm_tag").int32_val(), attribute(node, "comm_size").int64_val()};
        EXPECT_EQ(sent ? std::get<0>(message) : std::get<1>(message), static_cast<std::int32_t>(rank));
        EXPECT_FALSE(attribute(node, "is_cpu_op").bool_val());
        (sent ? sends : receives).insert(message);
      }
    }
  }
  EXPECT_EQ(sends, receives);
  EXPECT_EQ(std::set<Message>(sends.begin(), sends.end()).size(), sends.size()) << "messages must be distinct";
}

TEST(ChakraExport, EveryScheduleIsSound) {
  for (const Scope scope : {Scope::gate_up, Scope::layer}) {
    for (const std::int32_t ranks : {1, 2, 4}) {
      for (const Strategy& strategy : strategies()) {
        for (const StrategyOptions& options : schedules_to_try(strategy, kinds_of(scope), ranks)) {
          const Exported exported(generated(scope, ranks, strategy, options),
                                  {.gemm = 10us, .exchange = 4us, .collective = 9us, .elementwise = 3us, .issue = 1us});
          SCOPED_TRACE(exported.program->name);
          expect_sound(traces_of(exported));
          expect_sound(traces_of(exported, {.messages = reports::MessageOrder::data}));
        }
      }
    }
  }
}

TEST(ChakraExport, FuseAgOnEightRanksConsistsOfSendsReceivesAndTiles) {
  const Exported exported(one_site("commfuse", SiteKind::ag_gemm, 8), {.gemm = 10us, .exchange = 1us}, 16384);
  const std::vector<Trace> traces = traces_of(exported, {.messages = reports::MessageOrder::data});
  expect_sound(traces);
  for (const Trace& trace : traces) {
    EXPECT_EQ(count_of(trace), (std::map<proto::NodeType, int>{
                                   {proto::COMP_NODE, 8}, {proto::COMM_SEND_NODE, 7}, {proto::COMM_RECV_NODE, 7}}));
    int dependencies = 0;
    for (const proto::Node& node : trace.nodes) {
      dependencies += node.data_deps_size();
      if (node.type() == proto::COMP_NODE) {
        EXPECT_EQ(node.duration_micros(), 10U);
        EXPECT_EQ(attribute(node, "num_ops").int64_val(), 2 * 16384);                      // 1 x 16384 times 16384 x 1
        EXPECT_EQ(attribute(node, "tensor_size").uint64_val(), 2U * (16384 + 16384 + 1));  // bf16
      } else {
        EXPECT_EQ(attribute(node, "comm_size").int64_val(), 32768);
      }
    }
    EXPECT_EQ(dependencies, 20);  // equal to the number in the GOAL export of this schedule
  }
  EXPECT_EQ(traces[0].nodes[0].name(), "op0_send to 1");
  EXPECT_EQ(traces[0].nodes[2].name(), "op1 gemm site[0]");
}

TEST(ChakraExport, TheHostIsACpuOp) {
  const Exported exported(one_site("commfuse", SiteKind::ag_gemm, 2), {.gemm = 10us, .issue = 2us});
  const Trace trace = traces_of(exported)[0];
  EXPECT_EQ(trace.nodes[0].name(), "op0_issue exchange site.gathered");
  EXPECT_TRUE(attribute(trace.nodes[0], "is_cpu_op").bool_val());
  EXPECT_EQ(trace.nodes[0].duration_micros(), 2U);
  EXPECT_EQ(trace.nodes[1].data_deps(0), 0U);
}

TEST(ChakraExport, CollectivesStayCollectives) {
  struct Case {
    CollectiveKind kind;
    proto::CollectiveCommType type;
    std::int64_t bytes;  // bytes that each of 4 ranks contributes; there are 12 rows in bf16
  };
  for (const Case& expected : {Case{CollectiveKind::all_gather, proto::ALL_GATHER, 6},
                               Case{CollectiveKind::reduce_scatter, proto::REDUCE_SCATTER, 24},
                               Case{CollectiveKind::all_reduce, proto::ALL_REDUCE, 24},
                               Case{CollectiveKind::all_to_all, proto::ALL_TO_ALL, 24}}) {
    const Exported exported(one_collective(expected.kind, 4), {});
    const Trace trace = traces_of(exported)[1];
    ASSERT_EQ(trace.nodes.size(), 1U);
    EXPECT_EQ(trace.nodes[0].type(), proto::COMM_COLL_NODE);
    EXPECT_EQ(attribute(trace.nodes[0], "comm_type").int64_val(), expected.type);
    EXPECT_EQ(attribute(trace.nodes[0], "comm_size").int64_val(), expected.bytes);
    EXPECT_EQ(reports::chakra_groups(*exported.program), "");  // A group of all ranks needs no name.
  }
}

TEST(ChakraExport, AGroupOfSomeRanksHasANameAndMembers) {
  const Exported exported(one_collective(CollectiveKind::all_gather, 3, 2), {});
  const std::vector<Trace> traces = traces_of(exported);
  EXPECT_EQ(attribute(traces[1].nodes[0], "pg_name").string_val(), "7");   // axis 1 of 6 ranks, first member 0
  EXPECT_EQ(attribute(traces[5].nodes[0], "pg_name").string_val(), "10");  // first member 3
  EXPECT_EQ(reports::chakra_groups(*exported.program),
            "{\n  \"7\": [\n    0,\n    1,\n    2\n  ],\n  \"10\": [\n    3,\n    4,\n    5\n  ]\n}\n");
}

TEST(ChakraExport, TimesAreWholeMicrosecondsUnlessTheyAreScaled) {
  const Exported exported(one_site("serial", SiteKind::ag_gemm, 1), {.gemm = Duration{1'499'999}});
  EXPECT_EQ(traces_of(exported)[0].nodes.back().duration_micros(), 1U);
  const Trace scaled = traces_of(exported, {.time_scale = 1000})[0];
  EXPECT_EQ(scaled.nodes.back().duration_micros(), 1500U);
  EXPECT_EQ(scaled.metadata.attr(0).name(), "commfuse_time_scale");
  EXPECT_EQ(scaled.metadata.attr(0).int64_val(), 1000);
}

TEST(ChakraExport, ARankWithoutOpsHasOneNodeWithoutDuration) {
  ProgramBuilder builder("idle", Mesh{{{"tp", 2}}});
  const DimensionId tokens = builder.dimension("tokens", 1);
  const BufferId x = builder.buffer("x", BufferRole::input, {tokens, 1}, {tokens, 1}, DType::bf16);
  const BufferId y = builder.buffer("y", BufferRole::output, {tokens, 1}, {tokens, 1}, DType::bf16);
  const OpId copy =
      builder.elementwise({.function = Function::copy, .inputs = {{builder.whole(x)}}, .out = {builder.whole(y)}});
  builder.only_where(copy, {Relation::equal, 0, 0});
  const std::vector<Trace> traces = traces_of({std::move(builder).build(), {.elementwise = 5us}});
  ASSERT_EQ(traces[1].nodes.size(), 1U);
  EXPECT_EQ(traces[1].nodes[0].type(), proto::COMP_NODE);
  EXPECT_EQ(traces[1].nodes[0].duration_micros(), 0U);
}

}  // namespace
}  // namespace commfuse::test
