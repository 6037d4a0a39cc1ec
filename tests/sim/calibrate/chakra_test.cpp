// SPDX-License-Identifier: Apache-2.0
// Tests Chakra traces as measurements, in the layout that chakra_converter produces from PyTorch runs.
#include "sim/calibrate/chakra.h"

#include <et_def.pb.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "model/config_error.h"
#include "sim/calibrate/observations.h"
#include "tests/own_folder.h"
#include "tests/sim/message_of.h"

namespace commfuse::calibrate {
namespace {

namespace proto = ChakraProtoMsg;
using std::chrono::microseconds;
using Skipped = std::map<std::string, std::size_t>;

std::string message(const google::protobuf::MessageLite& content) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.WriteVarint32(static_cast<std::uint32_t>(content.ByteSizeLong()));
  content.SerializeToCodedStream(&out);
  out.Trim();
  return bytes;
}

std::string metadata(const std::string& name = "schema", const std::string& value = "1.1.0-chakra.0.0.4") {
  proto::GlobalMetadata global;
  proto::AttributeProto& attribute = *global.add_attr();
  attribute.set_name(name);
  attribute.set_string_val(value);
  return message(global);
}

proto::Node node(int id, const std::string& name, proto::NodeType type, bool is_cpu_op) {
  proto::Node operation;
  operation.set_id(static_cast<std::uint64_t>(id));
  operation.set_name(name);
  operation.set_type(type);
  proto::AttributeProto& attribute = *operation.add_attr();
  attribute.set_name("is_cpu_op");
  attribute.set_bool_val(is_cpu_op);
  return operation;
}

std::string mm(int id, const std::string& shapes = "[[4096, 8192], [8192, 1024]]") {
  proto::Node operation = node(id, "aten::mm", proto::COMP_NODE, true);
  operation.set_duration_micros(9);
  operation.mutable_inputs()->set_shapes(shapes);
  operation.mutable_inputs()->set_types("['Tensor(c10::BFloat16)', 'Tensor(c10::BFloat16)']");
  return message(operation);
}

std::string kernel(int id, int op, int duration, int start = 0, proto::NodeType type = proto::COMP_NODE) {
  proto::Node launched = node(id, "nvjet_tst", type, false);
  launched.add_ctrl_deps(static_cast<std::uint64_t>(op));
  launched.add_data_deps(static_cast<std::uint64_t>(op));
  launched.set_duration_micros(static_cast<std::uint64_t>(duration));
  launched.set_start_time_micros(static_cast<std::uint64_t>(start));
  return message(launched);
}

Profile chakra_profile(const std::string& bytes) {
  std::ofstream("a.0.et", std::ios::binary) << bytes;
  return read_chakra("a.0.et");
}

std::string error_of(const std::string& bytes) {
  return test::message_of([&] { chakra_profile(bytes); });
}

TEST(Chakra, AGemmHasShapesOfItsOperatorAndTheTimeOfItsKernel) {
  const OwnFolder folder;
  const Profile profile = chakra_profile(metadata() + mm(3) + kernel(4, 3, 150) + mm(5) + kernel(6, 5, 20) +
                                         message(node(7, "aten::relu", proto::COMP_NODE, true)) + kernel(8, 7, 30));
  EXPECT_TRUE(is_chakra_trace("a.0.et"));
  ASSERT_EQ(profile.gemms.size(), 1U);
  EXPECT_EQ(profile.gemms[0].size.m, 4096);
  EXPECT_EQ(profile.gemms[0].size.n, 1024);
  EXPECT_EQ(profile.gemms[0].size.k, 8192);
  EXPECT_EQ(profile.gemms[0].size.dtype, DType::bf16);
  EXPECT_EQ(profile.gemms[0].time, microseconds(150));
  EXPECT_EQ(profile.skipped,
            (Skipped{{"kernels of operators without a fit (15% of the kernel time)", 1},
                     {"kernels shorter than 100 us, too short for times in whole microseconds (10% of the kernel time)",
                      1}}));
  EXPECT_EQ(read_observations({"a.0.et"}, std::nullopt).gemm[index_of(DType::bf16)].source, "a.0.et");
}

TEST(Chakra, OnlyStartTimesShowWhichOpsCommunicationSlowed) {
  const OwnFolder folder;
  const std::string communication = kernel(9, 2, 500, 1000, proto::COMM_COLL_NODE);
  EXPECT_EQ(chakra_profile(metadata() + mm(3) + kernel(4, 3, 150, 100) + communication).gemms.size(), 1U);
  EXPECT_EQ(chakra_profile(metadata() + mm(3) + kernel(4, 3, 150, 900) + communication)
                .skipped.count("GEMMs concurrent with communication, which slows them"),
            1U);
  EXPECT_EQ(
      chakra_profile(metadata() + mm(3) + kernel(4, 3, 150) + kernel(9, 2, 450, 0, proto::COMM_COLL_NODE)).skipped,
      (Skipped{{"collectives and messages, whose ranks a Chakra trace does not name: use nccl-tests or the trace "
                "of PyTorch's profiler (75% of the kernel time)",
                1},
               {"kernels that communication may have slowed, which only start times would show (25% of the "
                "kernel time)",
                1}}));
}

TEST(Chakra, ComputationsWithoutShapesAreSkippedWithAReason) {
  const OwnFolder folder;
  proto::Node unnumbered;
  unnumbered.set_name("COMP_NODE_layer");
  unnumbered.set_type(proto::COMP_NODE);
  unnumbered.set_duration_micros(1000);
  proto::GlobalMetadata global;
  global.set_version("0.0.4");
  EXPECT_EQ(chakra_profile(message(global) + message(unnumbered)).skipped,
            (Skipped{{"computations without operator shapes, which only traces of PyTorch runs have (100% of the "
                      "kernel time)",
                      1}}));
  EXPECT_TRUE(is_chakra_trace("a.0.et"));
}

TEST(Chakra, PredictionsTruncatedTracesAndJsonAreErrors) {
  const OwnFolder folder;
  EXPECT_EQ(error_of(metadata("commfuse_time_scale") + mm(3)),
            "a.0.et: a schedule that commfuse exported, whose times are predictions; give the trace of a run");
  const std::string whole = metadata() + mm(3);
  EXPECT_EQ(
      error_of(whole.substr(0, whole.size() - 5)),
      fmt::format("a.0.et: the data at byte {} is not a node of a Chakra trace; convert it again", metadata().size()));
  EXPECT_EQ(error_of(R"({"schema": "1.1.0-chakra.0.0.4", "pid": 7, "nodes": []})"),
            "a.0.et: a PyTorch execution trace, which has no kernel times; give PyTorch's profiler "
            "trace of the same run, or the .et that chakra_trace_link and chakra_converter make from both");
  for (const char* text : {"m,n,k\n1,2,3\n", "\n\n# nccl-tests\n", "", "{}", "SQLite format 3"}) {
    std::ofstream("b") << text;
    EXPECT_FALSE(is_chakra_trace("b")) << text;
  }
}

}  // namespace
}  // namespace commfuse::calibrate
