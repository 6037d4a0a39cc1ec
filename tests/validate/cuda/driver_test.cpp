// SPDX-License-Identifier: Apache-2.0
// Tests streams, events, gates, graphs, traces, library GEMMs and NCCL on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/validate/cuda/on_device.h"
#include "validate/cuda/copier.h"
#include "validate/values/arithmetic.h"

namespace commfuse::validate {
namespace {

using test::some_values;

class CudaDevice : public test::OnDevice {
 protected:
  /// Returns a move that does not round.
  static MoveCall copy_of(const Panel& from, const Panel& to) { return {.parts = {{from, to}}, .wire = from.dtype}; }
};

TEST_F(CudaDevice, DescribesItself) {
  const DeviceFacts facts = driver().facts();
  EXPECT_FALSE(facts.name.empty());
  EXPECT_EQ(facts.uuid.size(), std::string("GPU-00000000-0000-0000-0000-000000000000").size());
  EXPECT_GE(facts.multiprocessors, 1);
  EXPECT_GE(facts.capability, 80);
  EXPECT_GT(facts.memory.count, 0);
  EXPECT_GT(facts.clock_mhz, 0);
  EXPECT_EQ(facts.nccl.empty(), !module().has_nccl());
}

TEST_F(CudaDevice, AStreamWaitsForAnEventOfAnotherStream) {
  const StreamId other = driver().make_stream(true);
  const EventId forked = driver().make_event(false);
  const Matrix<float> values = some_values(8, 8, DType::fp32, 1);
  const Panel from = put(values, DType::fp32);
  const Panel between = new_panel(8, 8, DType::fp32);
  const Panel to = new_panel(8, 8, DType::fp32);
  driver().spin(stream(), std::chrono::milliseconds(5));
  driver().move(stream(), copy_of(from, between));
  driver().record(forked, stream());
  driver().wait(other, forked);
  driver().move(other, copy_of(between, to));
  EXPECT_EQ(get(to), values);
}

TEST_F(CudaDevice, NothingPassesAClosedGate) {
  const Matrix<float> values = some_values(4, 4, DType::fp32, 2);
  const Panel from = put(values, DType::fp32);
  const Panel to = new_panel(4, 4, DType::fp32);
  driver().close_gate();
  driver().gate(stream());
  driver().move(stream(), copy_of(from, to));
  EXPECT_FALSE(driver().finish(std::chrono::milliseconds(20)));
  driver().open_gate();
  EXPECT_EQ(get(to), values);
  EXPECT_TRUE(driver().gate_held());
}

TEST_F(CudaDevice, AGateThatNobodyOpensTimesOut) {
  driver().close_gate();
  driver().gate(stream());
  EXPECT_TRUE(driver().finish(patience));
  EXPECT_FALSE(driver().gate_held());
  driver().open_gate();
}

TEST_F(CudaDevice, MemoryIsNotRequestedUnderAClosedGate) {
  driver().close_gate();
  EXPECT_THROW(driver().allocate({16}), std::runtime_error);
  EXPECT_THROW(driver().make_stream(false), std::runtime_error);
  driver().open_gate();
  const Address at = driver().allocate({16});
  driver().release(at);
  EXPECT_THROW(driver().release(at), std::runtime_error);
}

TEST_F(CudaDevice, AGraphOfTwoStreamsRunsTheIssuedWork) {
  const StreamId other = driver().make_stream(true);
  const EventId forked = driver().make_event(true);  // timed events order streams too
  const EventId joined = driver().make_event(true);
  const Matrix<float> values = some_values(16, 16, DType::fp32, 3);
  const Panel from = put(values, DType::fp32);
  const Panel between = new_panel(16, 16, DType::fp32);
  const Panel to = new_panel(16, 16, DType::fp32);
  driver().begin_capture(stream());
  driver().move(stream(), copy_of(from, between));
  driver().record(forked, stream());
  driver().wait(other, forked);
  driver().spin(other, std::chrono::milliseconds(2));
  driver().move(other, copy_of(between, to));
  driver().record(joined, other);
  driver().wait(stream(), joined);
  const GraphId graph = driver().end_capture();
  EXPECT_TRUE(std::ranges::none_of(get(to).values(), [](float value) { return value == value; })) << "still poison";
  driver().launch(stream(), graph);
  EXPECT_EQ(get(to), values);
  EXPECT_GE(driver().elapsed(forked, joined), std::chrono::milliseconds(1));
}

TEST_F(CudaDevice, AGraphKeepsMemoryThatLaterWorkOfItsStreamReplaces) {
  const auto bounced = [](const Panel& from, const Panel& to) {  // converts, so it needs memory on the device
    return MoveCall{.parts = {{from, to}}, .wire = DType::bf16, .link = {.kind = LinkKind::bounce, .ctas = 1}};
  };
  const Matrix<float> values = some_values(8, 8, DType::fp32, 13, true);
  const Panel from = put(values, DType::fp32);
  const Panel to = new_panel(8, 8, DType::fp32);
  driver().move(stream(), bounced(from, new_panel(8, 8, DType::fp32)));
  ASSERT_TRUE(driver().finish(patience));
  driver().begin_capture(stream());
  driver().move(stream(), bounced(from, to));
  const GraphId graph = driver().end_capture();
  const Panel large = put(some_values(64, 64, DType::fp32, 14, true), DType::fp32);
  driver().move(stream(), bounced(large, new_panel(64, 64, DType::fp32)));  // needs more memory
  ASSERT_TRUE(driver().finish(patience));
  driver().launch(stream(), graph);
  EXPECT_EQ(get(to), values);
}

TEST_F(CudaDevice, LibraryGemmsOfIntegersAreExact) {
  for (unsigned variant = 0; variant < 8; ++variant) {
    ProductCall call{.transpose_a = (variant & 1U) != 0,
                     .transpose_b = (variant & 2U) != 0,
                     .accumulate = (variant & 4U) != 0,
                     .sum_order = SumOrder::blocked,
                     .multiprocessors = variant % 2 == 0 ? 0 : 16};
    const Matrix<float> a = some_values(64, 32, DType::bf16, 4 + variant, true);
    const Matrix<float> b = some_values(32, 48, DType::bf16, 40 + variant, true);
    const Matrix<float> before = some_values(64, 48, DType::fp32, 400 + variant, true);
    call.a = put(call.transpose_a ? transposed(a) : a, DType::bf16, 8);
    call.b = put(call.transpose_b ? transposed(b) : b, DType::bf16);
    call.out = put(before, DType::fp32, 8);
    driver().product(stream(), call);
    const std::array terms{before, product(a, b)};
    EXPECT_EQ(get(call.out), call.accumulate ? sum(terms) : product(a, b)) << variant;
    EXPECT_TRUE(is_padding_untouched(call.out));
  }
}

TEST_F(CudaDevice, AWholeGemmByTheAlgorithmOfItsShardsHasTheirBits) {
  constexpr std::int64_t rows = 512;
  constexpr std::int64_t shard = 128;
  const Panel a = put(some_values(rows, 256, DType::bf16, 6), DType::bf16);
  const Panel b = put(some_values(256, 192, DType::bf16, 7), DType::bf16);
  const Panel whole = new_panel(rows, 192, DType::fp32);
  const Panel cut = new_panel(rows, 192, DType::fp32);
  driver().product(stream(), {.a = a, .b = b, .out = whole, .sum_order = SumOrder::blocked, .algorithm_rows = shard});
  for (std::int64_t row = 0; row < rows; row += shard) {
    const auto rows_in = [&](Panel panel) {
      panel.at += static_cast<Address>(row * panel.stride * bytes_of(panel.dtype));
      panel.rows = shard;
      return panel;
    };
    driver().product(stream(), {.a = rows_in(a), .b = b, .out = rows_in(cut), .sum_order = SumOrder::blocked});
  }
  EXPECT_EQ(get(whole), get(cut));
}

TEST_F(CudaDevice, AGemmOnReservedMultiprocessorsHasTheSameResult) {
  Partition partition;
  try {
    partition = driver().make_partition(16);
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << error.what();  // CUDA or its driver is too old
  }
  EXPECT_GE(partition.multiprocessors, 16);
  const StreamId reserved = driver().make_stream_on(partition, false);
  const Matrix<float> a = some_values(64, 32, DType::bf16, 50, true);
  const Matrix<float> b = some_values(32, 48, DType::bf16, 51, true);
  const Panel out = new_panel(64, 48, DType::fp32);
  driver().product(reserved, {.a = put(a, DType::bf16),
                              .b = put(b, DType::bf16),
                              .out = out,
                              .sum_order = SumOrder::blocked,
                              .multiprocessors = partition.multiprocessors});
  EXPECT_EQ(get(out), product(a, b));
}

TEST_F(CudaDevice, ATraceNamesKernelsByTheirLabels) {
  const Panel from = put(some_values(8, 8, DType::fp32, 8), DType::fp32);
  const Panel to = new_panel(8, 8, DType::fp32);
  ASSERT_TRUE(driver().finish(patience));
  driver().begin_trace();
  driver().label(7);
  driver().spin(stream(), std::chrono::microseconds(50));
  driver().label(9);
  driver().move(stream(), {.parts = {{from, to}}, .wire = DType::fp32, .link = {.ctas = 3}});
  ASSERT_TRUE(driver().finish(patience));
  const std::vector<DeviceSpan> spans = driver().end_trace();
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].label, 7U);
  EXPECT_EQ(spans[1].label, 9U);
  EXPECT_EQ(spans[1].ctas, 3);
  EXPECT_LE(spans[0].begin, spans[0].end);
  EXPECT_LE(spans[0].end, spans[1].begin);
}

TEST_F(CudaDevice, ATraceThatWasNeverEndedDoesNotPreventTheNext) {
  driver().begin_trace();
  driver().label(1);
  driver().spin(stream(), std::chrono::microseconds(50));
  ASSERT_TRUE(driver().finish(patience));
  driver().begin_trace();  // the run that began the first trace has failed
  driver().label(2);
  driver().spin(stream(), std::chrono::microseconds(50));
  ASSERT_TRUE(driver().finish(patience));
  const std::vector<DeviceSpan> spans = driver().end_trace();
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].label, 2U);
}

TEST_F(CudaDevice, ATraceNamesCopiesAndTheNodesOfAGraph) {
  const Panel from = put(some_values(8, 8, DType::fp32, 8), DType::fp32);
  const Panel to = new_panel(8, 8, DType::fp32);
  const MoveCall bounced{.parts = {{from, to}}, .wire = DType::fp32, .link = {.kind = LinkKind::bounce, .ctas = 1}};
  driver().move(stream(), bounced);  // allocates its memory
  ASSERT_TRUE(driver().finish(patience));
  driver().begin_trace();
  driver().label(5);
  driver().begin_capture(stream());
  driver().spin(stream(), std::chrono::microseconds(50));
  const GraphId graph = driver().end_capture();
  driver().label(6);
  driver().launch(stream(), graph);
  driver().label(7);
  driver().move(stream(), bounced);
  ASSERT_TRUE(driver().finish(patience));
  const std::vector<DeviceSpan> spans = driver().end_trace();
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0].label, 5U) << "the label of its capture";
  EXPECT_EQ(spans[1].label, 7U);
  EXPECT_EQ(spans[1].name, "copy device to host");
  EXPECT_TRUE(spans[1].by_copy_engine);
  EXPECT_EQ(spans[2].name, "copy host to device");
}

/// The first device of a machine with several GPUs. The software GPU reads their number once, so tests that run after a
/// test with one GPU in the same process are skipped.
class CudaDevices : public CudaDevice {
 protected:
  void SetUp() override {
    ::setenv("SOFTWARE_GPU_DEVICES", "2", 1);  // NOLINT(concurrency-mt-unsafe): no other thread reads it
    CudaDevice::SetUp();
    if (!IsSkipped() && module().devices() < 2) {
      GTEST_SKIP() << "only one GPU";
    }
  }
  void TearDown() override { ::unsetenv("SOFTWARE_GPU_DEVICES"); }  // NOLINT(concurrency-mt-unsafe): as above
};

TEST_F(CudaDevices, ATraceNamesCopiesBetweenThem) {
  const std::unique_ptr<Copier> copier = module().make_copier(patience);
  if (!copier->reaches(0, 1)) {
    GTEST_SKIP() << "these GPUs cannot access each other";
  }
  copier->make_room({1024});
  const std::array copies{TimedCopy{.issuer = 0, .from = 0, .to = 1, .bytes = {1024}}};
  driver().begin_trace();
  driver().label(4);
  copier->check(copies);
  const std::vector<DeviceSpan> spans = driver().end_trace();
  constexpr std::string_view name = "copy between GPUs";
  const auto copy = std::ranges::find(spans, name, &DeviceSpan::name);
  ASSERT_NE(copy, spans.end());
  EXPECT_EQ(std::ranges::count(spans, name, &DeviceSpan::name), 1);
  EXPECT_EQ(copy->label, 4U);
  EXPECT_LE(copy->begin, copy->end);
  EXPECT_TRUE(copy->by_copy_engine);
}

TEST_F(CudaDevice, ATraceNamesMessagesOfNcclByTheirLabels) {
  if (!module().has_nccl()) {
    GTEST_SKIP() << "built without NCCL";
  }
  const auto network = module().connect(driver(), module().make_key(), 0, 1, {});
  const Panel from = put(some_values(8, 8, DType::fp32, 10), DType::fp32);
  const Panel to = new_panel(8, 8, DType::fp32);
  const std::array sends{MessageEnd{0, from}};
  const std::array receives{MessageEnd{0, to}};
  const std::size_t lane = network->split(0);
  network->exchange(lane, stream(), sends, receives);  // the first exchange connects
  ASSERT_TRUE(driver().finish(patience));
  driver().begin_trace();
  driver().label(5);
  network->exchange(lane, stream(), sends, receives);
  ASSERT_TRUE(driver().finish(patience));
  const std::vector<DeviceSpan> spans = driver().end_trace();
  EXPECT_FALSE(spans.empty());
  for (const DeviceSpan& span : spans) {
    EXPECT_EQ(span.label, 5U) << span.name;
  }
}

TEST_F(CudaDevice, ANetworkEndsThoughGraphsHoldItsMessages) {
  if (!module().has_nccl()) {
    GTEST_SKIP() << "built without NCCL";
  }
  const Matrix<float> values = some_values(8, 8, DType::fp32, 12);
  const std::array sends{MessageEnd{0, put(values, DType::fp32)}};
  for (const bool aborts : {false, true}) {
    std::unique_ptr<Network> network = module().connect(driver(), module().make_key(), 0, 1, {.graphs = true});
    const std::array receives{MessageEnd{0, new_panel(8, 8, DType::fp32)}};
    const std::array lanes{network->split(0), network->split(0)};
    const auto exchange = [&] {
      for (const std::size_t lane : lanes) {
        network->exchange(lane, stream(), sends, receives);
      }
    };
    exchange();  // the first exchange connects
    ASSERT_TRUE(driver().finish(patience));
    driver().begin_capture(stream());
    exchange();
    const GraphId graph = driver().end_capture();
    driver().launch(stream(), graph);
    EXPECT_EQ(get(receives[0].data), values);
    if (aborts) {
      network->abort();
    }
    network.reset();  // NCCL waits here for graphs that hold its operations
    EXPECT_THROW(driver().launch(stream(), graph), std::runtime_error);
  }
}

TEST_F(CudaDevice, ReleasedMultiprocessorsCanBeReservedAgain) {
  Partition first;
  try {
    first = driver().make_partition(16);
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << error.what();  // CUDA or its driver is too old
  }
  const StreamId ended = driver().make_stream_on(first, true);
  driver().spin(ended, std::chrono::microseconds(50));
  driver().end_partition(first);
  EXPECT_THROW(driver().spin(ended, std::chrono::microseconds(50)), std::runtime_error);
  EXPECT_THROW(driver().end_partition(first), std::runtime_error);
  const Partition large = driver().make_partition(driver().facts().multiprocessors / 2 + 1);
  EXPECT_THROW(static_cast<void>(driver().make_partition(large.multiprocessors)), std::runtime_error);
  driver().end_partition(large);
}

TEST_F(CudaDevice, OneRankSendsToItselfThroughNccl) {
  if (!module().has_nccl()) {
    GTEST_SKIP() << "built without NCCL";
  }
  const auto network = module().connect(driver(), module().make_key(), 0, 1, {.registered = true});
  const Matrix<float> values = some_values(32, 32, DType::bf16, 9);
  const Panel from = put(values, DType::bf16);
  const Panel to = new_panel(32, 32, DType::bf16);
  const std::array sends{MessageEnd{0, from}};
  const std::array receives{MessageEnd{0, to}};
  const std::size_t messages = network->split(0);
  const std::size_t collectives = network->split(0);
  network->exchange(messages, stream(), sends, receives);
  EXPECT_EQ(get(to), values);
  const Panel gathered = new_panel(32, 32, DType::bf16);
  network->collective(collectives, stream(), CollectiveKind::all_gather, from, gathered);
  EXPECT_EQ(get(gathered), values);
  EXPECT_EQ(network->failure(), std::nullopt);
}

}  // namespace
}  // namespace commfuse::validate
